"""A flat graph as a tree of the modules that were called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from isograd.convert.graph.operators import functional
from isograd.convert.graph.program import (
    Given,
    Graph,
    Node,
    Produced,
    Reference,
    Weight,
    references_in,
)

#: Operators whose result shares memory with their first argument, or may.
_VIEWS = frozenset(
    "view reshape _unsafe_view view_as flatten unflatten permute transpose t numpy_T movedim "
    "squeeze unsqueeze expand expand_as split split_with_sizes chunk unbind select narrow slice "
    "alias detach contiguous to unfold".split()
)
_STORES = ("slice_scatter", "select_scatter")


@dataclass
class Call:
    """One call of a module: what it ran, in order.

    inputs: what it used from outside, in the order of the first use; its own weights do not count.
    outputs: what is used outside of it; results: what the network returns, of its own call.
    """

    key: str
    path: str
    items: list[Item] = field(default_factory=list)
    inputs: list[Reference] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    def nodes(self) -> Iterator[Node]:
        """All nodes inside, in order."""
        for item in self.items:
            if isinstance(item, Node):
                yield item
            else:
                yield from item.nodes()

    def calls(self) -> Iterator[Call]:
        """All calls inside, outer ones first."""
        for item in self.items:
            if isinstance(item, Call):
                yield item
                yield from item.calls()


Item = Node | Call


def is_in_place(node: Node) -> bool:
    """Whether the operator changes its first argument."""
    packet = node.target.rpartition(".")[0]
    return packet.endswith("_") and not packet.endswith("__")


def changes_weight(node: Node) -> bool:
    """Whether the operator changes a parameter or buffer."""
    return is_in_place(node) and isinstance(next(iter(node.arguments.values()), None), Weight)


def is_element(node: Node) -> bool:
    """Whether it takes one of several results of another node."""
    return node.target == "operator.getitem"


def needed(graph: Graph) -> tuple[Node, ...]:
    """The nodes that a result or a buffer depends on, in order.

    Counts of batches are left out: MindSpore's layers have none, and nothing reads them.
    """
    wanted = {ref.name for ref in references_in(_flat(graph.output)) if isinstance(ref, Produced)}
    kept = []
    for node in reversed(graph.nodes):
        counts = any(
            isinstance(ref, Weight) and ref.name.endswith("num_batches_tracked")
            for ref in node.references()
        )
        if node.name in wanted or (changes_weight(node) and not counts):
            kept.append(node)
            wanted.update(ref.name for ref in node.references() if isinstance(ref, Produced))
    return tuple(reversed(kept))


def _flat(output: object) -> tuple[object, ...]:
    if isinstance(output, list):
        return tuple(part for _, value in output for part in _flat(value))
    if isinstance(output, tuple):
        return tuple(part for value in output for part in _flat(value))
    return (output,)


def shared_changes(nodes: Iterable[Node]) -> list[Node]:
    """Nodes that change a tensor which is read later under another of its names.

    A graph without memory cannot say them by rebinding alone.  nodes: all of a graph, also those
    whose result nothing reads.
    """
    listed = list(nodes)
    base: dict[str, str] = {}
    last: dict[str, int] = {}
    for position, node in enumerate(listed):
        references = list(node.references())
        if functional(node.target).split(".")[1] in _STORES:
            references = []  # it makes a new whole of the old one and the part that was changed
        last.update({ref.name: position for ref in references if isinstance(ref, Produced)})
        if is_element(node):  # of new tensors (values, positions), or of views of one
            shares = any(isinstance(ref, Produced) and ref.name in base for ref in references)
        else:
            shares = functional(node.target).split(".")[1] in _VIEWS or is_in_place(node)
        if shares and references:
            first = references[0]
            if isinstance(first, Produced):
                base[node.name] = base.get(first.name, first.name)
            elif isinstance(first, Weight) and not is_in_place(node):
                base[node.name] = f"weight {first.name}"
    found = []
    for position, node in enumerate(listed):
        if not is_in_place(node) or node.name not in base:
            continue
        root = base[node.name]
        family = {name for name, known in base.items() if known == root} | {root}
        made_before = {n.name for n in listed[:position]} & family
        if root.startswith("weight ") or any(last.get(n, -1) > position for n in made_before):
            found.append(node)
    return found


def tree_of(graph: Graph, nodes: Iterable[Node], output_names: Iterable[str]) -> Call:
    """The calls of a graph, with what goes into and out of each."""
    root = Call("", "")
    opened = [root]
    owner: dict[str, Call] = {}
    for node in _asking(list(nodes)):
        if is_element(node):
            base = node.arguments["0"]
            home = owner[base.name] if isinstance(base, Produced) else opened[-1]
            home.items.append(node)
            owner[node.name] = home
            continue
        _open(opened, _stack(node))
        opened[-1].items.append(node)
        owner[node.name] = opened[-1]
    root.results = list(output_names)
    _borders(root, set(root.results))
    return root


def _asking(nodes: list[Node]) -> Iterator[Node]:
    """The nodes, where those say so that find no tensor at hand with the size of the batch.

    At hand is what the module's own code is given or has made by then.
    """
    grows = {node.name for node in nodes if node.batch is not None}
    home = {node.name: _home(node) for node in nodes}
    given = {
        home[node.name]
        for node in nodes
        for ref in node.references()
        if isinstance(ref, Given)
        or (
            isinstance(ref, Produced)
            and ref.name in grows
            and home.get(ref.name) != home[node.name]
        )
    }
    for node in nodes:
        own = home[node.name]
        if node.has_batched() and own not in given:
            yield replace(node, asks=True)
        else:
            yield node
        if node.name in grows:
            given.add(own)


def _home(node: Node) -> str:
    return node.stack[-1][0] if node.stack else ""


def _stack(node: Node) -> list[tuple[str, str]]:
    """Calls and paths from the outermost, without the network itself.

    A module that lies outside the one that calls it is taken as a part of the caller's code.
    """
    found: list[tuple[str, str]] = []
    for key, path, _ in node.stack:
        above = found[-1][1] if found else ""
        if path and (not above or path.startswith(above + ".")) and path != above:
            found.append((key, path))
    return found


def _open(opened: list[Call], stack: list[tuple[str, str]]) -> None:
    same = 0
    for call, (key, _) in zip(opened[1:], stack, strict=False):
        if call.key != key:
            break
        same += 1
    del opened[same + 1 :]
    for key, path in stack[same:]:
        call = Call(key, path)
        opened[-1].items.append(call)
        opened.append(call)


def _borders(root: Call, results: set[str]) -> None:
    users: dict[str, list[str]] = {}
    for node in root.nodes():
        for ref in node.references():
            if isinstance(ref, Produced):
                users.setdefault(ref.name, []).append(node.name)
    for call in root.calls():
        inside = {node.name for node in call.nodes()}
        seen: set[Reference] = set()
        for node in call.nodes():
            for ref in node.references():
                if ref in seen or not _is_outside(ref, inside, call.path):
                    continue
                seen.add(ref)
                call.inputs.append(ref)
            used = users.get(node.name, [])
            if node.name in results or any(name not in inside for name in used):
                call.outputs.append(node.name)


def _is_outside(ref: Reference, inside: set[str], path: str) -> bool:
    if isinstance(ref, Produced):
        return ref.name not in inside
    if isinstance(ref, Weight):
        return not ref.name.startswith(path + ".")
    return isinstance(ref, Given)

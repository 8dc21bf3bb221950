"""Writes into buffers and data of tensors in what a compiled step would run.

A static graph takes a buffer for a constant: what is written to it counts, but products of what
were zeros when it was compiled stay zeros.  To bind a buffer to another tensor it refuses, and
`p.data` of a Parameter is a constant for it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

from isograd.convert.training.outer_writes import imported, outer_writes
from isograd.convert.training.paths import path_of
from isograd.scan.names_in_place import changes_in_place
from isograd.static_graph.find import compiled_functions
from isograd.static_graph.scope import FileScope, below

_DATA = "data"
_SUMS = (ast.Add, ast.Sub)


def written_state(
    trees: Iterable[tuple[str, ast.Module]], buffers: Collection[str]
) -> Iterator[tuple[str, ast.AST, str]]:
    """The file, the place and the reason for each.

    buffers: their names, of all classes of the project.
    """
    trees = list(trees)
    plain = plain_attributes(trees)
    held = {*buffers, *plain}
    written: dict[str, tuple[str, ast.expr]] = {}
    read: set[str] = set()
    for name, tree in trees:
        imports = imported(tree)
        for compiled in compiled_functions(FileScope(tree)):
            for outer in outer_writes(compiled.node, imports):
                yield name, outer, _reason(outer)
            inside = below(compiled.node)
            parents = {part: node for node in inside for part in ast.iter_child_nodes(node)}
            for node in inside:
                place = _place_of_write(node)
                if _is_lost(node, parents, buffers) or _is_stored_into(node, held):
                    yield name, node, _reason(node)
                elif place is not None and _is_element(place, plain):
                    yield name, place, _reason(place)
                elif place is not None:
                    chain = {*_in_chain(place, buffers), *_in_chain(_written_into(place), plain)}
                    written |= dict.fromkeys(chain, (name, place))
                elif _is_buffer(node, parents, held) and not _is_added(node, parents):
                    read.add(getattr(node, "attr", ""))
    for buffer in sorted(written.keys() & read):
        name, place = written[buffer]
        yield name, place, _reason(place)


def _reason(node: ast.AST) -> str:
    return f"what is written to {ast.unparse(node)} is no part of a static graph"


def _is_lost(node: ast.AST, parents: Mapping[ast.AST, ast.AST], buffers: Collection[str]) -> bool:
    """`self.buffer = …`, `self.layer.weight.data = …` or `… *= 2`."""
    if not isinstance(getattr(node, "ctx", None), ast.Store):
        return False
    if not isinstance(node, ast.Attribute):
        return False
    change = parents[node]
    if node.attr in buffers:
        is_added = isinstance(change, ast.AugAssign) and isinstance(change.op, _SUMS)
        return not is_added
    is_of_another = isinstance(node.value, ast.Attribute) and node.value.attr not in buffers
    return is_of_another and (node.attr == _DATA or isinstance(change, ast.AugAssign))


def _is_stored_into(node: ast.AST, held: Collection[str]) -> bool:
    """`self.buffer[0] = …`."""
    is_store = isinstance(getattr(node, "ctx", None), ast.Store)
    return is_store and isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") in held


def _written_into(place: ast.expr) -> ast.expr:
    """What holds an attribute that is bound, which says nothing of what it was bound to before."""
    is_bound = isinstance(place, ast.Attribute) and isinstance(place.ctx, ast.Store)
    return place.value if is_bound else place  # type: ignore[attr-defined]  # an attribute


def _is_element(place: ast.expr, plain: Collection[str]) -> bool:
    """`self.rows[0]`, of a list or a tensor that is no buffer."""
    return any(
        isinstance(part, ast.Subscript) and getattr(part.value, "attr", "") in plain
        for part in ast.walk(place)
    )


def plain_attributes(trees: Iterable[tuple[str, ast.Module]]) -> set[str]:
    """The attributes that may be tensors or lists of them, and are no Parameters or layers."""
    files = [FileScope(tree) for _, tree in trees]
    classes = {name for file in files for name in file.classes}
    found: set[str] = set()
    others: set[str] = set()
    for file in files:
        for method in (one for scope in file.classes.values() for one in scope.methods.values()):
            own = next((one.arg for one in method.args.args), "")
            for node in below(method):
                if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
                    continue
                function = getattr(node.value, "func", None)
                api = "" if function is None else file.qualified(function)
                is_object = api.startswith("torch.nn.") or getattr(function, "id", "") in classes
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Attribute) and path_of(target.value) == own:
                        (others if is_object else found).add(target.attr)
    return found - others


def _is_buffer(node: ast.AST, parents: Mapping[ast.AST, ast.AST], buffers: Collection[str]) -> bool:
    """Whether it names a buffer, and no method."""
    if not isinstance(node, ast.Attribute) or node.attr not in buffers:
        return False
    parent = parents.get(node)
    return not (isinstance(parent, ast.Call) and parent.func is node)


def _place_of_write(node: ast.AST) -> ast.expr | None:
    """What a subscript, `.data` or a method is written to that changes a tensor."""
    if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
        return node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        return node.func.value if changes_in_place(name) else None
    return None


def _in_chain(node: ast.expr, buffers: Collection[str]) -> Iterator[str]:
    """The buffers to which elements, data and methods lead."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Attribute) and node.attr in buffers:
            yield node.attr
        if not isinstance(node, ast.Call):
            node = node.value
        elif isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return


def _is_added(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a buffer is written, or no more than added to something."""
    parent = parents.get(node)
    while isinstance(parent, (ast.Subscript, ast.Attribute)) and parent.value is node:
        if isinstance(parent, ast.Attribute) and parent.attr != _DATA:
            return parent.attr in ("add_", "sub_", "copy_", "fill_", "zero_")
        node, parent = parent, parents.get(parent)
    if isinstance(parent, (ast.BinOp, ast.AugAssign)):
        return isinstance(parent.op, _SUMS)
    is_target = isinstance(parent, ast.Assign) and node in parent.targets
    return is_target and isinstance(node, ast.Subscript)

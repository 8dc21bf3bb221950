"""Names that hold a tensor's data and are written to: `w = layer.weight.data; w.fill_(1)`.

What a port reads of `.data` is a tensor of its own (MindSpore 2.10), so such a name holds the
Parameter itself in a port, and what is written to it goes there.  Not so of what was computed:
there a tensor of its own keeps the gradient out (`target = q.data; target[done] = 0`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from isograd.convert.leaves import is_leaf
from isograd.convert.tree import Tree, names_of
from isograd.scan.names_in_place import changes_in_place

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
#: Methods of their form that write nothing into the tensor.
_WRITING_NOTHING = frozenset(("requires_grad_", "share_memory_"))
_INIT = "torch.nn.init."
#: Where functions whose name ends in `_` change their first argument.
_CHANGING = frozenset(("torch", "torch.Tensor", "torch.nn.functional"))
_MAKING_PARAMETERS = frozenset(("torch.nn.Parameter", "torch.nn.parameter.Parameter"))
#: Calls that give what something holds, or that go through it.
_GIVING = frozenset(
    "getattr next iter list tuple zip enumerate reversed sorted filter get pop values items "
    "parameters named_parameters buffers named_buffers modules named_modules children "
    "named_children get_parameter get_buffer".split()
)
_LEARNING = frozenset(("grad", "weight", "bias"))


@dataclass
class DataAliases:
    """What names hold of tensors' data.

    values: the expressions, `x.data` or `x.grad.detach()`; names, containers: by their scope.
    """

    values: set[ast.AST] = field(default_factory=set)
    names: set[tuple[ast.AST | None, str]] = field(default_factory=set)
    containers: set[tuple[ast.AST | None, str]] = field(default_factory=set)


def data_aliases(tree: Tree, named: Mapping[ast.AST, str]) -> DataAliases:
    """What the names of a file hold of tensors' data, where they are written to.

    named: the torch APIs that names and attributes of the file mean.
    """
    found = DataAliases()
    nodes = (*tree.of(ast.Attribute), *tree.of(ast.Call))
    scopes = {tree.function(node) for node in nodes if owner_of(node) is not None}
    for scope in scopes:
        _of_scope(tree.module if scope is None else scope, scope, named, found)
    return found


def is_data(node: ast.AST) -> bool:
    """`x.data`, of anything but the object itself."""
    if not isinstance(node, ast.Attribute) or node.attr != "data":
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))


def owner_of(node: ast.AST) -> ast.expr | None:
    """x of `x.data`, and x.grad of `x.grad.detach()`; else None."""
    if is_data(node):
        assert isinstance(node, ast.Attribute)
        owner = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        owner = node.func.value
        is_kept = isinstance(owner, ast.Attribute) and owner.attr in _LEARNING
        if node.func.attr != "detach" or not is_kept:
            return None
    else:
        return None
    return owner if isinstance(owner, (ast.Name, ast.Attribute)) else None


def _lasting(known: Collection[str], node: ast.AST) -> bool:
    """Whether the data of a Parameter, or of what a function is given to change, is held."""
    owner = owner_of(node)
    if not isinstance(owner, ast.Name):
        return owner is not None
    return owner.id in known


def _lasting_names(
    scope: ast.AST, nodes: Iterable[ast.AST], named: Mapping[ast.AST, str]
) -> set[str]:
    """The names that hold what was there before: arguments, attributes, elements, leaves.

    What was computed is left out: there a tensor of its own keeps the gradient out.
    """
    bound: dict[str, list[ast.expr]] = {}
    found: set[str] = set()
    for node in nodes:
        for name, value in _bound(node):
            bound.setdefault(name, []).append(value)
        if isinstance(node, _LOOPS):
            for name in names_of(node.target):
                bound.setdefault(name, []).append(node.iter)
        elif isinstance(node, ast.Name):
            found.add(node.id)
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = scope.args
        found |= {part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    computed = {
        name
        for name, values in bound.items()
        if any(_is_computed(value, named) for value in values)
    }
    while True:  # what is another name of something computed
        further = {
            name
            for name, values in bound.items()
            if any(isinstance(value, ast.Name) and value.id in computed for value in values)
        }
        if further <= computed:
            return found - computed
        computed |= further


def _is_computed(value: ast.expr, named: Mapping[ast.AST, str]) -> bool:
    """Whether an expression makes a new tensor, that is no leaf."""
    if isinstance(value, ast.IfExp):
        return _is_computed(value.body, named) or _is_computed(value.orelse, named)
    if not isinstance(value, ast.Call):
        return isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant))
    if is_leaf(value) or named.get(value.func, "") in _MAKING_PARAMETERS:
        return False
    if isinstance(value.func, ast.Name):
        return value.func.id not in _GIVING
    return not (isinstance(value.func, ast.Attribute) and value.func.attr in _GIVING)


def _of_scope(
    scope: ast.AST, key: ast.AST | None, named: Mapping[ast.AST, str], found: DataAliases
) -> None:
    nodes = list(_nodes(scope))
    known = _lasting_names(scope, nodes, named)
    if not any(_lasting(known, node) for node in nodes):
        return
    written = {name for node in nodes for name in _written(node, named)}
    loops = [node for node in nodes if isinstance(node, _LOOPS)]
    for loop in reversed(loops):
        if written.intersection(names_of(loop.target)):
            written.update(names_of(loop.iter))
    containers = set()
    for node in nodes:
        for target, value in _bound(node):
            if target not in written:
                continue
            if _lasting(known, value):
                found.names.add((key, target))
                found.values.add(value)
                continue
            inside = [part for part in _elements(value) if _lasting(known, part)]
            if inside:
                containers.add(target)
                found.values.update(inside)
    found.containers.update((key, name) for name in containers)
    for loop in loops:
        targets = written.intersection(names_of(loop.target))
        inside = [part for part in _elements(loop.iter) if _lasting(known, part)]
        if targets and inside:  # `for d in (p.data for p in parameters): d.zero_()`
            found.names.update((key, name) for name in targets)
            found.values.update(inside)
        if containers.intersection(names_of(loop.iter)):
            found.names.update((key, name) for name in names_of(loop.target) if name in written)


def _nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of scopes inside it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def _writes_into_argument(api: str) -> bool:
    """Whether a function of torch writes into its first argument: `nn.init.ones_`, `torch.exp_`."""
    home, _, name = api.rpartition(".")
    is_changing = changes_in_place(name)
    return api.startswith(_INIT) or (is_changing and home in _CHANGING)


def _written(node: ast.AST, named: Mapping[ast.AST, str]) -> Iterator[str]:
    """The names that a node writes into."""
    if isinstance(node, ast.Call):
        function = node.func
        if _writes_into_argument(named.get(function, "")):
            yield from _root(next(iter(node.args), None))
        elif isinstance(function, ast.Attribute) and function.attr not in _WRITING_NOTHING:
            if changes_in_place(function.attr):
                yield from _root(function.value)
    elif isinstance(node, ast.AugAssign):
        yield from _root(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            several = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for part in several:
                if isinstance(part, ast.Subscript):
                    yield from _root(part)


def _root(node: ast.AST | None) -> Iterator[str]:
    """The name behind elements, views and chains of methods."""
    while isinstance(node, (ast.Subscript, ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Name):
        yield node.id


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment binds, with what it binds them to."""
    if isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        if isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(node.value, ast.Tuple):
            for part, value in zip(target.elts, node.value.elts, strict=False):
                if isinstance(part, ast.Name):
                    yield part.id, value


def _elements(value: ast.expr) -> Iterator[ast.expr]:
    """What a list, a dictionary or a choice that is written out holds."""
    if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
        yield from value.elts
    elif isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield value.elt
    elif isinstance(value, ast.DictComp):
        yield value.value
    elif isinstance(value, ast.Dict):
        yield from value.values
    elif isinstance(value, ast.IfExp):
        yield from (value.body, value.orelse)

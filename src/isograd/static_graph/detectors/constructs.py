"""Rules that no single name or node tells: functions from one function's code to its places."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from isograd.static_graph.detectors.common import Found, binds_self, changes
from isograd.static_graph.scope import (
    CELLS,
    DICT,
    LIST,
    MASK,
    NONE,
    PARTIAL,
    SEQUENCE,
    TENSOR,
    TENSORS,
    FileScope,
    below,
    is_self_attribute,
)
from isograd.static_graph.table import rules
from isograd.static_graph.values import Locals

_CASTS = frozenset("astype half float double to bfloat16 type_as int long bool".split())
_PLAIN_DECORATORS = frozenset(
    "staticmethod classmethod property abstractmethod override jit lru_cache cache cached_property "
    "constexpr ms_function jit_class overload final no_grad wraps".split()
)


def two_loops(own: Locals) -> Found:
    """A comprehension with two `for`."""
    found: list[ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp] = [
        *own.all(ast.ListComp),
        *own.all(ast.GeneratorExp),
        *own.all(ast.DictComp),
        *own.all(ast.SetComp),
    ]
    return (node for node in found if len(node.generators) > 1)


def dict_unpacking(own: Locals) -> Found:
    """`{**a}`."""
    return (n for n in own.all(ast.Dict) if None in n.keys)


def for_else(own: Locals) -> Found:
    """`for … else`."""
    return (n for n in own.all(ast.For) if n.orelse)


def while_else(own: Locals) -> Found:
    """`while … else`."""
    return (n for n in own.all(ast.While) if n.orelse)


def fstring_format(own: Locals) -> Found:
    """`f"{i:03d}"`."""
    return (n for n in own.all(ast.FormattedValue) if n.format_spec)


def lambda_attribute(own: Locals) -> Found:
    """`self.act = lambda …` on one line, called in construct: at the call."""
    for node in own.all(ast.Call):
        if is_self_attribute(node.func):
            assert isinstance(node.func, ast.Attribute)
            for scope in own.file.with_attributes(own.cls):
                made = scope.made.get(node.func.attr)
                if isinstance(made, ast.Lambda) and _is_on_its_line(scope.node, made):
                    yield node


def _is_on_its_line(cls: ast.ClassDef, made: ast.Lambda) -> bool:
    """Whether the lambda shares the line that binds it with a `def` or with another lambda."""
    shared = (ast.FunctionDef, ast.Lambda)
    others = [n for n in below(cls) if isinstance(n, shared) and n.lineno == made.lineno]
    if len(others) < 2:
        return False
    for node in below(cls):
        if isinstance(node, ast.Assign) and any(n is made for n in below(node.value)):
            return any(binds_self(t) and t.lineno == made.lineno for t in node.targets)
    return False


def sorted_key(own: Locals) -> Found:
    """`sorted(values, key=f)` where f is a local name, which the compiler does not find."""
    for node in own.calls.get("builtins.sorted", ()):
        if any(k.arg == "key" and isinstance(k.value, ast.Name) for k in node.keywords):
            yield node


def _tensor_branches(own: Locals) -> Iterator[ast.If]:
    for node in own.all(ast.If):
        if own.of(node.test) in TENSORS:
            yield node


def branch_dtype(own: Locals) -> Found:
    """`if tensor: y = y.astype(…)` without the other branch."""
    for branch in _tensor_branches(own):
        for node in branch.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                names = {t.id for t in node.targets if isinstance(t, ast.Name)}
                if _is_cast_of(node.value, names) and not names & _bound(branch.orelse):
                    yield node


def _is_cast_of(call: ast.Call, names: set[str]) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _CASTS:
        return False
    return getattr(function.value, "id", "") in names


def _bound(body: list[ast.stmt]) -> set[str]:
    return {
        n.id
        for part in body
        for n in below(part)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def branch_none(own: Locals) -> Found:
    """`m = None`, then `if tensor: m = …` without the other branch."""
    nones = {
        t.id: n.lineno
        for n in own.all(ast.Assign)
        if own.of(n.value) == NONE
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    for branch in _tensor_branches(own):
        one_sided = _bound(branch.body) ^ _bound(branch.orelse)
        if any(name in one_sided and line < branch.lineno for name, line in nones.items()):
            yield branch


def branch_append(own: Locals) -> Found:
    """`if tensor: ys.append(…)`."""
    for branch in _tensor_branches(own):
        for node in below(branch):
            if changes(node, own, ("append",)):
                yield node


def dict_or(own: Locals) -> Found:
    """`a | b` of dictionaries."""
    for node in own.all(ast.BinOp):
        if isinstance(node.op, ast.BitOr):
            if DICT in (own.of(node.left), own.of(node.right)):
                yield node


def _reversed_of(own: Locals, kinds: tuple[str, ...]) -> Found:
    for node in own.calls.get("builtins.reversed", ()):
        if node.args and own.of(node.args[0]) in kinds:
            yield node


def cells_reversed(own: Locals) -> Found:
    """`reversed(self.layers)`."""
    return _reversed_of(own, (CELLS, SEQUENCE))


def list_reversed(own: Locals) -> Found:
    """`reversed(ys)` of a list."""
    return _reversed_of(own, (LIST,))


def _made_of(own: Locals, is_wanted: Callable[[str], bool]) -> Iterator[ast.Call]:
    for name, nodes in own.calls.items():
        if is_wanted(name.rpartition(".")[2]):
            yield from (node for node in nodes if isinstance(node.func, (ast.Name, ast.Attribute)))


def _has_tensors(node: ast.Call, own: Locals) -> bool:
    return any(own.of(v) in TENSORS for v in (*node.args, *(k.value for k in node.keywords)))


def jit_class_tensors(own: Locals) -> Found:
    """An instance of a jit_class made of tensors."""
    for node in _made_of(own, lambda name: _is_decorated(own.file, name, "jit_class")):
        if _has_tensors(node, own):
            yield node


def _is_decorated(file: FileScope, name: str, decorator: str) -> bool:
    scope = file.classes.get(name)
    return scope is not None and any(d.rpartition(".")[2] == decorator for d in scope.decorators)


def dataclass(own: Locals) -> Found:
    """A dataclass that is made of tensors."""
    file = own.file
    for node in _made_of(own, lambda name: _is_decorated(file, name, "dataclass")):
        name = file.qualified(node.func).rpartition(".")[2]
        if not _is_decorated(file, name, "jit_class") and _has_tensors(node, own):
            yield node


def plain_object(own: Locals) -> Found:
    """An object of a plain class, or a distribution of torch's, that is made of tensors."""
    for name, nodes in own.calls.items():
        is_drawn = name.startswith("torch.distributions.") and name.rpartition(".")[2][:1].isupper()
        place = own.file.definition_of(nodes[0].func)
        if is_drawn or (place is not None and place[0].is_plain_class(place[1])):
            yield from (node for node in nodes if _has_tensors(node, own))


def named_tuple(own: Locals) -> Found:
    """A NamedTuple that is made of tensors."""
    names = own.file.named_tuples
    return (n for n in _made_of(own, lambda name: name in names) if _has_tensors(n, own))


def mask_assigned(own: Locals) -> Found:
    """`y[mask] = values`."""
    for node in own.all(ast.Assign):
        if own.of(node.value) in TENSORS:
            for target in node.targets:
                if isinstance(target, ast.Subscript) and _is_masked(node.value, target, own):
                    yield node


def _is_masked(value: ast.expr, target: ast.Subscript, own: Locals) -> bool:
    """A mask, or the same index on both sides: `y[m] = x[m]`."""
    if own.of(target.slice) == MASK:
        return True
    both = isinstance(value, ast.Subscript) and isinstance(target.slice, ast.Name)
    return both and ast.dump(value.slice) == ast.dump(target.slice)  # type: ignore[attr-defined]


def partial(own: Locals) -> Found:
    """A call of `functools.partial` that is kept on self or in the module."""
    for node in own.all(ast.Call):
        function = node.func
        is_own = is_self_attribute(function) and own.of(function) == PARTIAL
        if is_own or getattr(function, "id", "") in own.file.partials:
            yield node


def sequence_slice(own: Locals) -> Found:
    """`self.layers[1:](x)`."""
    for node in own.all(ast.Call):
        if isinstance(node.func, ast.Subscript):
            if isinstance(node.func.slice, ast.Slice) and own.of(node.func.value) == SEQUENCE:
                yield node


def dict_call(own: Locals) -> Found:
    """`dict(a=…)`, `dict(pairs)`."""
    for node in own.calls.get("builtins.dict", ()):
        if node.args or node.keywords:
            yield node


def math_tensor(own: Locals) -> Found:
    """`math.sqrt(tensor)`."""
    return (node for node in own.calls_below("math.") if _has_tensors(node, own))


def tensor_of_tensors(own: Locals) -> Found:
    """`Tensor([t, u])`."""
    makers = ("mindspore.Tensor", "mindspore.tensor", "torch.tensor")
    for node in (node for name in makers for node in own.calls.get(name, ())):
        first = node.args[0] if node.args else None
        parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else []
        if any(own.of(part) in TENSORS for part in parts):
            yield node


def mask_index(own: Locals) -> Found:
    """`y[y > 0]`."""
    for node in own.all(ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            if own.of(node.slice) == MASK and own.of(node.value) in TENSORS:
                yield node


_PADS = frozenset(rules()["pad.constant"].cells)


def pad_constant(own: Locals) -> Found:
    """`ops.pad` with constants, or a cell that does so."""
    for node in own.all(ast.Call):
        name = own.file.qualified(node.func)
        if name in ("mindspore.ops.pad", "mindspore.mint.nn.functional.pad"):
            mode = next((k.value for k in node.keywords if k.arg == "mode"), None)
            mode = node.args[2] if len(node.args) > 2 else mode
            if mode is None or getattr(mode, "value", "") == "constant":
                yield node
        elif isinstance(node.func, ast.Attribute) and is_self_attribute(node.func):
            made = own.file.made(own.cls, node.func.attr)
            kind = own.file.qualified(made.func) if isinstance(made, ast.Call) else ""
            if kind.startswith("mindspore.nn.") and kind.rpartition(".")[2] in _PADS:
                yield node


def dict_input(own: Locals) -> Found:
    """`batch['c'] = …` of an argument."""
    for node in own.all(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                key = target.slice
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    if target.value.id in own.arguments:
                        yield node


def decorated(own: Locals) -> Found:
    """A compiled function with a decorator that is not the language's or the compiler's."""
    for decorator in own.function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = own.file.qualified(target)
        if not name or name.rpartition(".")[2] in _PLAIN_DECORATORS:
            continue
        if not name.startswith(("mindspore.", "torch.", "typing.")) and ".setter" not in name:
            yield decorator


def while_tensor_counter(own: Locals) -> Found:
    """`while i < 3: i += 1` of a tensor."""
    for node in own.all(ast.While):
        names = {n.id for n in below(node.test) if isinstance(n, ast.Name)}
        for inner in below(node):
            if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                name = inner.target.id
                if name in names and own.kinds.get(name) == TENSOR:
                    yield inner


def is_tensor(own: Locals) -> Found:
    """`y is x` of tensors."""
    for node in own.all(ast.Compare):
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            sides = (node.left, node.comparators[0])
            if all(own.of(side) in TENSORS for side in sides):
                yield node


def is_ellipsis(own: Locals) -> Found:
    """`part is ...`."""
    for node in own.all(ast.Compare):
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            if any(_is_rest(own, side) for side in (node.left, node.comparators[0])):
                yield node


def _is_rest(own: Locals, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is ...
    return own.file.qualified(node) == "builtins.Ellipsis"


def isinstance_range(own: Locals) -> Found:
    """`isinstance(part, range)`."""
    for node in own.calls.get("builtins.isinstance", ()):
        kinds = node.args[1] if len(node.args) == 2 else None
        parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        if any(part and own.file.qualified(part) == "builtins.range" for part in parts):
            yield node


def cell_list_construct(file: FileScope) -> Iterator[tuple[str, ast.AST]]:
    """A class derived from CellList with a construct of its own."""
    for name, scope in file.classes.items():
        lists = ("mindspore.nn.CellList", "torch.nn.ModuleList")
        if any(base in lists for base in scope.bases):
            for entry in ("construct", "forward"):
                if entry in scope.methods:
                    yield name, scope.methods[entry]

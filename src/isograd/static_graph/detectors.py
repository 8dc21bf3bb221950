"""Rules that no single name or node tells: functions from one function's code to its places."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from isograd.static_graph.scope import (
    BUFFER,
    CELL,
    CELLS,
    DICT,
    LIST,
    MASK,
    NONE,
    NUMBER,
    PARAMETER,
    PARTIAL,
    SEQUENCE,
    TENSOR,
    TENSORS,
    FileScope,
    Locals,
    below,
    is_self_attribute,
)
from isograd.static_graph.table import rules

_Found = Iterator[ast.AST]
_VIEWS = frozenset(
    "reshape view transpose swapaxes permute squeeze unsqueeze flatten T expand_dims t".split()
)
_CASTS = frozenset("astype half float double to bfloat16 type_as int long bool".split())
_CHANGES = frozenset("append extend insert pop remove clear reverse sort".split())
_PLAIN_DECORATORS = frozenset(
    "staticmethod classmethod property abstractmethod override jit lru_cache cache cached_property "
    "constexpr ms_function jit_class overload final no_grad wraps".split()
)


_Position = tuple[int, int]


def _position(node: ast.AST) -> _Position:
    """Where a node stands: line and column."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def two_loops(own: Locals) -> _Found:
    """A comprehension with two `for`."""
    found: list[ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp] = [
        *own.all(ast.ListComp),
        *own.all(ast.GeneratorExp),
        *own.all(ast.DictComp),
        *own.all(ast.SetComp),
    ]
    return (node for node in found if len(node.generators) > 1)


def dict_unpacking(own: Locals) -> _Found:
    """`{**a}`."""
    return (n for n in own.all(ast.Dict) if None in n.keys)


def for_else(own: Locals) -> _Found:
    """`for … else`."""
    return (n for n in own.all(ast.For) if n.orelse)


def while_else(own: Locals) -> _Found:
    """`while … else`."""
    return (n for n in own.all(ast.While) if n.orelse)


def fstring_format(own: Locals) -> _Found:
    """`f"{i:03d}"`."""
    return (n for n in own.all(ast.FormattedValue) if n.format_spec)


def lambda_attribute(own: Locals) -> _Found:
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
            return any(_binds_self(t) and t.lineno == made.lineno for t in node.targets)
    return False


def sorted_key(own: Locals) -> _Found:
    """`sorted(values, key=f)` where f is a local name, which the compiler does not find."""
    for node in own.calls.get("builtins.sorted", ()):
        if any(k.arg == "key" and isinstance(k.value, ast.Name) for k in node.keywords):
            yield node


def _binds_self(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return any(is_self_attribute(part) for part in parts)


def _tensor_branches(own: Locals) -> Iterator[ast.If]:
    for node in own.all(ast.If):
        if own.of(node.test) in TENSORS:
            yield node


def branch_dtype(own: Locals) -> _Found:
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


def branch_none(own: Locals) -> _Found:
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


def branch_append(own: Locals) -> _Found:
    """`if tensor: ys.append(…)`."""
    for branch in _tensor_branches(own):
        for node in below(branch):
            if _changes(node, own, ("append",)):
                yield node


def _changes(node: ast.AST, own: Locals, methods: frozenset[str] | tuple[str, ...]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and own.of(node.func.value) == LIST
    )


def dict_or(own: Locals) -> _Found:
    """`a | b` of dictionaries."""
    for node in own.all(ast.BinOp):
        if isinstance(node.op, ast.BitOr):
            if DICT in (own.of(node.left), own.of(node.right)):
                yield node


def _reversed_of(own: Locals, kinds: tuple[str, ...]) -> _Found:
    for node in own.calls.get("builtins.reversed", ()):
        if node.args and own.of(node.args[0]) in kinds:
            yield node


def cells_reversed(own: Locals) -> _Found:
    """`reversed(self.layers)`."""
    return _reversed_of(own, (CELLS, SEQUENCE))


def list_reversed(own: Locals) -> _Found:
    """`reversed(ys)` of a list."""
    return _reversed_of(own, (LIST,))


def attribute_of_another(own: Locals) -> _Found:
    """`self.sub.flag = …`."""
    for node in own.all(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and is_self_attribute(target.value):
                if own.of(target.value) in (CELL, SEQUENCE):
                    yield node


def class_method(own: Locals) -> _Found:
    """`self.helper(…)` of a classmethod."""
    for node in own.all(ast.Call):
        if is_self_attribute(node.func):
            assert isinstance(node.func, ast.Attribute)
            method = own.file.method(own.cls, node.func.attr)
            names = [own.file.qualified(d) for d in method.decorator_list] if method else []
            if "builtins.classmethod" in names:
                yield node


def _made_of(own: Locals, is_wanted: Callable[[str], bool]) -> Iterator[ast.Call]:
    for name, nodes in own.calls.items():
        if is_wanted(name.rpartition(".")[2]):
            yield from (node for node in nodes if isinstance(node.func, (ast.Name, ast.Attribute)))


def _has_tensors(node: ast.Call, own: Locals) -> bool:
    return any(own.of(v) in TENSORS for v in (*node.args, *(k.value for k in node.keywords)))


def jit_class_tensors(own: Locals) -> _Found:
    """An instance of a jit_class made of tensors."""
    for node in _made_of(own, lambda name: _is_decorated(own.file, name, "jit_class")):
        if _has_tensors(node, own):
            yield node


def _is_decorated(file: FileScope, name: str, decorator: str) -> bool:
    scope = file.classes.get(name)
    return scope is not None and any(d.rpartition(".")[2] == decorator for d in scope.decorators)


def dataclass(own: Locals) -> _Found:
    """A dataclass that is made of tensors."""
    file = own.file
    for node in _made_of(own, lambda name: _is_decorated(file, name, "dataclass")):
        name = file.qualified(node.func).rpartition(".")[2]
        if not _is_decorated(file, name, "jit_class") and _has_tensors(node, own):
            yield node


def named_tuple(own: Locals) -> _Found:
    """A NamedTuple that is made of tensors."""
    names = own.file.named_tuples
    return (n for n in _made_of(own, lambda name: name in names) if _has_tensors(n, own))


def mask_assigned(own: Locals) -> _Found:
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


def partial(own: Locals) -> _Found:
    """A call of `functools.partial` that is kept on self or in the module."""
    for node in own.all(ast.Call):
        function = node.func
        is_own = is_self_attribute(function) and own.of(function) == PARTIAL
        if is_own or getattr(function, "id", "") in own.file.partials:
            yield node


def sequence_slice(own: Locals) -> _Found:
    """`self.layers[1:](x)`."""
    for node in own.all(ast.Call):
        if isinstance(node.func, ast.Subscript):
            if isinstance(node.func.slice, ast.Slice) and own.of(node.func.value) == SEQUENCE:
                yield node


def dict_call(own: Locals) -> _Found:
    """`dict(a=…)`, `dict(pairs)`."""
    for node in own.calls.get("builtins.dict", ()):
        if node.args or node.keywords:
            yield node


def math_tensor(own: Locals) -> _Found:
    """`math.sqrt(tensor)`."""
    return (node for node in own.calls_below("math.") if _has_tensors(node, own))


def tensor_of_tensors(own: Locals) -> _Found:
    """`Tensor([t, u])`."""
    makers = ("mindspore.Tensor", "mindspore.tensor", "torch.tensor")
    for node in (node for name in makers for node in own.calls.get(name, ())):
        first = node.args[0] if node.args else None
        parts = first.elts if isinstance(first, (ast.List, ast.Tuple)) else []
        if any(own.of(part) in TENSORS for part in parts):
            yield node


def _is_known(own: Locals, name: str) -> bool:
    for scope in own.file.with_attributes(own.cls):
        if name in scope.kinds or any(_binds(part, name) for part in scope.node.body):
            return True
    return False


def _binds(part: ast.stmt, name: str) -> bool:
    targets = part.targets if isinstance(part, ast.Assign) else []
    if isinstance(part, ast.AnnAssign):
        targets = [part.target]
    return any(isinstance(t, ast.Name) and t.id == name for t in targets)


def self_new(own: Locals) -> _Found:
    """`self.fresh = …` where nothing made it before."""
    return (node for node, name in own.self_targets if not _is_known(own, name))


def _kept(own: Locals, is_wanted: Callable[[str, ast.stmt], bool]) -> _Found:
    for node, name in own.self_targets:
        kind = own.file.attribute(own.cls, name)
        if _is_known(own, name) and kind not in (PARAMETER, BUFFER) and is_wanted(kind, node):
            yield node


def self_counter(own: Locals) -> _Found:
    """`self.n = self.n + 1`."""
    return _kept(own, lambda kind, node: kind == NUMBER)


def self_cache(own: Locals) -> _Found:
    """`if self.pe is None: self.pe = …`."""
    guarded = {
        id(inner)
        for node in own.all(ast.If)
        if _asks_self(node.test)
        for part in node.body
        for inner in below(part)
    }
    return _kept(own, lambda kind, node: kind != NUMBER and id(node) in guarded)


def _asks_self(test: ast.expr) -> bool:
    return any(is_self_attribute(n) for n in below(test))


def self_kept(own: Locals) -> _Found:
    """`self.last = tensor`."""
    caches = {id(node) for node in self_cache(own)}
    return _kept(own, lambda kind, node: kind != NUMBER and id(node) not in caches)


def self_container(own: Locals) -> _Found:
    """`self.log.append(…)`, `self.cache['k'] = …`."""
    for node in own.all(ast.Call):
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _CHANGES and is_self_attribute(node.func.value):
                if own.of(node.func.value) == LIST:
                    yield node
    for assignment in own.all(ast.Assign):
        for target in assignment.targets:
            if isinstance(target, ast.Subscript) and is_self_attribute(target.value):
                if own.of(target.value) in (LIST, DICT):
                    yield assignment


def slice_in_list(own: Locals) -> _Found:
    """`s[1] = slice(0, 2)` of a list."""
    for node in own.all(ast.Assign):
        if isinstance(node.value, ast.Call):
            if own.file.qualified(node.value.func) == "builtins.slice":
                if any(
                    isinstance(t, ast.Subscript) and own.of(t.value) == LIST for t in node.targets
                ):
                    yield node


def mask_index(own: Locals) -> _Found:
    """`y[y > 0]`."""
    for node in own.all(ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            if own.of(node.slice) == MASK and own.of(node.value) in TENSORS:
                yield node


_PADS = frozenset(rules()["pad.constant"].cells)


def pad_constant(own: Locals) -> _Found:
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


def dict_input(own: Locals) -> _Found:
    """`batch['c'] = …` of an argument."""
    for node in own.all(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                key = target.slice
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    if target.value.id in own.arguments:
                        yield node


def decorated(own: Locals) -> _Found:
    """A compiled function with a decorator that is not the language's or the compiler's."""
    for decorator in own.function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = own.file.qualified(target)
        if not name or name.rpartition(".")[2] in _PLAIN_DECORATORS:
            continue
        if not name.startswith(("mindspore.", "torch.", "typing.")) and ".setter" not in name:
            yield decorator


def while_tensor_counter(own: Locals) -> _Found:
    """`while i < 3: i += 1` of a tensor."""
    for node in own.all(ast.While):
        names = {n.id for n in below(node.test) if isinstance(n, ast.Name)}
        for inner in below(node):
            if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
                name = inner.target.id
                if name in names and own.kinds.get(name) == TENSOR:
                    yield inner


def is_tensor(own: Locals) -> _Found:
    """`y is x` of tensors."""
    for node in own.all(ast.Compare):
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            sides = (node.left, node.comparators[0])
            if all(own.of(side) in TENSORS for side in sides):
                yield node


def list_alias(own: Locals) -> _Found:
    """A list that is changed through another name, or by a helper whose result is dropped."""
    aliases = {
        t.id
        for n in own.all(ast.Assign)
        if isinstance(n.value, ast.Name) and own.of(n.value) == LIST
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    for node in own.all(ast.Call):
        if _changes(node, own, _CHANGES):
            assert isinstance(node.func, ast.Attribute)
            if getattr(node.func.value, "id", "") in aliases:
                yield node
    yield from _changed_by_helpers(own, (LIST,))


def _changed_by_helpers(own: Locals, kinds: tuple[str, ...]) -> _Found:
    """`self.helper(ys)` as a statement, where the helper changes what it is given."""
    for node in own.all(ast.Expr):
        call = node.value
        if not isinstance(call, ast.Call):
            continue
        helper = _helper(own, call.func)
        names = [a.arg for a in helper.args.args if a.arg != "self"] if helper else []
        for name, given in zip(names, call.args, strict=False):
            if isinstance(given, ast.Name) and own.of(given) in kinds:
                if helper is not None and _is_changed(helper, name):
                    yield call


def _helper(own: Locals, function: ast.expr) -> ast.FunctionDef | None:
    if isinstance(function, ast.Attribute) and is_self_attribute(function):
        return own.file.method(own.cls, function.attr)
    return own.file.functions.get(function.id) if isinstance(function, ast.Name) else None


def _is_changed(helper: ast.FunctionDef, name: str) -> bool:
    for node in below(helper):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            if getattr(node.value, "id", "") == name:
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _CHANGES and getattr(node.func.value, "id", "") == name:
                return True
    return False


def parameter_write(own: Locals) -> _Found:
    """`self.r[:] = …`, `self.r.mul_(…)`, `ops.assign(self.buffer, …)`."""
    for node in own.all(ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            if own.of(node.value) in (PARAMETER, BUFFER):
                yield node
    for call in own.all(ast.Call):
        if isinstance(call.func, ast.Attribute):
            subject = _chained(call.func)
            method = call.func.attr
            if method.endswith("_") and method not in ("copy_", "__init__"):
                if is_self_attribute(subject) and own.of(subject) in (PARAMETER, BUFFER):
                    yield call
            elif own.file.qualified(call.func) == "mindspore.ops.assign" and call.args:
                if own.of(call.args[0]) == BUFFER:
                    yield call


def _chained(node: ast.expr) -> ast.expr:
    """The subject of `x.mul_(a).add_(b)`."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        inner = node.func if isinstance(node, ast.Call) else node
        if not isinstance(inner, ast.Attribute) or is_self_attribute(inner):
            return inner
        node = inner.value
    return node


def _other_names(own: Locals) -> dict[str, tuple[str, _Position]]:
    """Names that are views or other names of a tensor: of which, and since which line."""
    found: dict[str, tuple[str, _Position]] = {}
    for node in own.all(ast.Assign):
        if len(node.targets) != 1:
            continue
        target, source = node.targets[0], _viewed(node.value)
        if isinstance(target, ast.Name) and isinstance(source, ast.Name):
            if target.id != source.id and own.of(source) in TENSORS:
                found[target.id] = source.id, _position(node)
    return found


def _viewed(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Subscript):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _VIEWS:
            return node.func.value
    return node


def _is_read_after(own: Locals, name: str, after: _Position) -> bool:
    return any(
        n.id == name and isinstance(n.ctx, ast.Load) and _position(n) > after
        for n in own.all(ast.Name)
    )


def view_write(own: Locals) -> _Found:
    """`v = y[0]`, then `v[:] = 0`, and y is read again; or a helper that writes into y."""
    others = _other_names(own)
    for node in own.all(ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            name = getattr(node.value, "id", "")
            if name in others and others[name][1] < _position(node):
                if _is_read_after(own, others[name][0], _position(node)):
                    yield node
    yield from _changed_by_helpers(own, (TENSOR,))


def write_after_read(own: Locals) -> _Found:
    """`z = y * y`, then `y[0] = 0`, and z is read again."""
    for node in own.all(ast.Subscript):
        if not isinstance(node.ctx, ast.Store):
            continue
        name = getattr(node.value, "id", "")
        if name and own.of(node.value) == TENSOR and _read_before(own, name, _position(node)):
            yield node


def _read_before(own: Locals, name: str, before: _Position) -> bool:
    for node in own.all(ast.Assign):
        if _position(node) >= before:
            continue
        target = node.targets[0]
        is_product = isinstance(node.value, ast.BinOp) and isinstance(
            node.value.op, (ast.Mult, ast.Div, ast.Pow, ast.MatMult)
        )
        names = {n.id for n in below(node.value) if isinstance(n, ast.Name)}
        if is_product and name in names and isinstance(target, ast.Name) and target.id != name:
            if _is_read_after(own, target.id, before):
                return True
    return False


def augmented_alias(own: Locals) -> _Found:
    """`z = y`, then `y += x`, and z is read again; or the other way round."""
    aliases: dict[str, tuple[str, _Position]] = {}
    for node in own.all(ast.Assign):
        if isinstance(node.value, ast.Name):
            if own.of(node.value) in TENSORS:
                names = [t.id for t in node.targets if isinstance(t, ast.Name)]
                aliases |= dict.fromkeys(names, (node.value.id, _position(node)))
    pairs = [*aliases.items(), *((source, (name, at)) for name, (source, at) in aliases.items())]
    for change in own.all(ast.AugAssign):
        if isinstance(change.target, ast.Name):
            for name, (other, at) in pairs:
                if name == change.target.id and at < _position(change):
                    if _is_read_after(own, other, _position(change)):
                        yield change


def in_place_result(own: Locals) -> _Found:
    """`y.add_(x)` as a statement."""
    for node in own.all(ast.Expr):
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            if call.func.attr in ("add_", "sub_", "mul_", "div_"):
                if isinstance(call.func.value, ast.Name) and own.of(call.func.value) in TENSORS:
                    yield call


def cell_list_construct(file: FileScope) -> Iterator[tuple[str, ast.AST]]:
    """A class derived from CellList with a construct of its own."""
    for name, scope in file.classes.items():
        lists = ("mindspore.nn.CellList", "torch.nn.ModuleList")
        if any(base in lists for base in scope.bases):
            for entry in ("construct", "forward"):
                if entry in scope.methods:
                    yield name, scope.methods[entry]


DETECTORS: dict[str, Callable[[Locals], _Found]] = {
    function.__name__: function
    for function in (
        two_loops, dict_unpacking, for_else, while_else, fstring_format, lambda_attribute,
        sorted_key,
        branch_dtype, branch_none, branch_append, dict_or, cells_reversed, list_reversed,
        attribute_of_another, class_method, jit_class_tensors, dataclass, named_tuple,
        mask_assigned, partial, sequence_slice, dict_call, math_tensor, tensor_of_tensors,
        self_new, self_counter, self_cache, self_kept, self_container, slice_in_list, mask_index,
        pad_constant, dict_input, decorated, while_tensor_counter, is_tensor, list_alias,
        parameter_write, view_write, write_after_read, augmented_alias, in_place_result,
    )
}  # fmt: skip
FILE_DETECTORS: dict[str, Callable[[FileScope], Iterator[tuple[str, ast.AST]]]] = {
    "cell_list_construct": cell_list_construct
}

"""Which expressions hold no negative number by what makes them: positions, counts and masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.file import FileEdit
from isograd.convert.integer_expressions import MASKS, POSITIONS
from isograd.convert.passes.module_contents import registered_buffers
from isograd.convert.passes.reach_of_writes import scope_of

#: What gives values with their positions.
_RANKED = frozenset("topk sort max min kthvalue median mode cummax cummin".split())
#: What makes numbers from 0 on, beside `POSITIONS`.
_COUNTS = frozenset(
    "zeros zeros_like ones ones_like eye multinomial relu abs bool byte size numel".split()
)
#: Methods and functions whose result holds elements of their tensor, or sums and products of them.
_KEEPING = frozenset(
    """view reshape flatten unflatten unsqueeze squeeze expand expand_as repeat permute transpose t
    clone contiguous detach to type cpu cuda long int short sum cumsum prod cumprod max min amax
    amin flip roll repeat_interleave index_select gather tril triu unbind chunk split unique tile
    movedim swapaxes broadcast_to item tolist""".split()
)
_LITERALS = frozenset("tensor as_tensor LongTensor IntTensor".split())
_GROWING = (
    ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift,
    ast.RShift, ast.Div, ast.Pow,
)  # fmt: skip
_Seen = frozenset[tuple[ast.AST, str]]


def is_nonnegative(node: ast.expr | None, file: FileEdit, seen: _Seen = frozenset()) -> bool:
    """Whether no element can be negative; of arguments and of other functions nothing is known."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and node.value >= 0
    if isinstance(node, (ast.List, ast.Tuple)):
        return all(is_nonnegative(part, file, seen) for part in node.elts)
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return isinstance(node.op, _GROWING) and all(is_nonnegative(n, file, seen) for n in sides)
    if isinstance(node, ast.Subscript):
        is_second = isinstance(node.slice, ast.Constant) and node.slice.value == 1
        is_shape = getattr(node.value, "attr", "") == "shape"
        ranks = is_second and _ranks(node.value, file)
        return is_shape or ranks or is_nonnegative(node.value, file, seen)
    if isinstance(node, ast.Attribute):
        if node.attr == "indices" and _ranks(node.value, file):
            return True
        if node.attr in ("T", "mT", "data"):
            return is_nonnegative(node.value, file, seen)
        return _is_nonnegative_buffer(node, file, seen)
    if isinstance(node, ast.Name):
        return _is_nonnegative_name(node, file, seen)
    return isinstance(node, ast.Call) and _makes_none(node, file, seen)


def _ranks(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression, or all that its name holds, is `x.topk(3)`: values with positions."""
    if isinstance(node, ast.Name):
        bound = list(_bound_to(node, file))
        return bool(bound) and all(
            value is not None and at is None and isinstance(value, ast.Call) and _ranks(value, file)
            for value, at in bound
        )
    return isinstance(node, ast.Call) and _name_of(node, file) in _RANKED


def _name_of(node: ast.Call, file: FileEdit) -> str:
    """The name of a function of torch's, or of a method of whatever; empty for another function."""
    api = file.api_of_call(node)
    if api.startswith("torch."):
        return api.rpartition(".")[2]
    return node.func.attr if not api and isinstance(node.func, ast.Attribute) else ""


def _is_nonnegative_name(node: ast.Name, file: FileEdit, seen: _Seen) -> bool:
    """Of all that binds a name and changes it; what is asked already is taken to hold."""
    key = (scope_of(node, file).node, node.id)
    if key in seen:
        return True
    known = seen | {key}
    bound = list(_bound_to(node, file))
    return bool(bound) and all(
        is_nonnegative(value, file, known)
        if at is None
        else isinstance(value, ast.Call)
        and ((at == 1 and _ranks(value, file)) or _parts_hold_none(value, file, known))
        for value, at in bound
    )


def _is_nonnegative_buffer(node: ast.Attribute, file: FileEdit, seen: _Seen) -> bool:
    """Of `self.index`, a buffer that nothing in the file changes."""
    kind = file.tree.owner(node)
    if kind is None or getattr(node.value, "id", "") != "self":
        return False
    call = registered_buffers(kind, file).get(node.attr)
    if call is None or len(call.args) < 2:
        return False
    for part in file.tree.of(ast.Attribute):
        above = file.tree.parents.get(part)
        is_changed = isinstance(above, ast.Attribute) and above.attr.endswith("_")
        is_set = not isinstance(part.ctx, ast.Load) or _is_stored_into(part, file)
        if part.attr == node.attr and (is_changed or is_set):
            return False
    return is_nonnegative(call.args[1], file, seen)


def _is_stored_into(node: ast.expr, file: FileEdit) -> bool:
    """`self.index[0] = …`."""
    above = file.tree.parents.get(node)
    while isinstance(above, ast.Subscript) and above.value is node:
        if not isinstance(above.ctx, ast.Load):
            return True
        node, above = above, file.tree.parents.get(above)
    return False


def _parts_hold_none(node: ast.Call, file: FileEdit, seen: _Seen) -> bool:
    """Whether none of the tensors that a call gives together holds a negative number."""
    return _name_of(node, file) not in _RANKED and is_nonnegative(node, file, seen)


def _bound_to(name: ast.Name, file: FileEdit) -> Iterator[tuple[ast.expr | None, int | None]]:
    """What a name is bound to and what is written into it, each with its position in a tuple.

    None means what is not known: arguments, loops, changes by a method.
    """
    scope = scope_of(name, file)
    if name.id in scope.parameters or name.id not in scope.bound:
        yield None, None
        return
    explained = set[ast.AST]()
    for part in scope.nodes:
        if isinstance(part, ast.Assign):
            for target in part.targets:
                for one, value, at in _pairs(target, part.value):
                    if _root(one) == name.id:
                        explained.add(one)
                        yield value, at
        elif isinstance(part, ast.AugAssign) and _root(part.target) == name.id:
            explained.add(part.target)
            yield (part.value if isinstance(part.op, _GROWING) else None), None
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            is_changed = part.func.attr.endswith("_") and not part.func.attr.startswith("_")
            if is_changed and _root(part.func.value) == name.id:
                yield None, None
    for part in scope.nodes:
        is_stored = isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        if is_stored and part.id == name.id and part not in explained:  # type: ignore[attr-defined]  # a name
            yield None, None


def _pairs(
    target: ast.expr, value: ast.expr
) -> Iterator[tuple[ast.expr, ast.expr | None, int | None]]:
    """The targets of an assignment with their values, or with the position in what is taken."""
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value, None
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, other)
    else:
        for at, one in enumerate(target.elts):
            yield one, (None if isinstance(one, (ast.Tuple, ast.List)) else value), at


def _root(node: ast.AST) -> str:
    """x of `x`, `x[0]` and `x.data`."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return getattr(node, "id", "")


def _makes_none(node: ast.Call, file: FileEdit, seen: _Seen) -> bool:
    """Whether a call makes no negative number."""
    if getattr(node.func, "id", "") in ("len", "range"):
        return len(node.args) == 1 or is_nonnegative(node.args[0], file, seen)
    name, is_api = _name_of(node, file), bool(file.api_of_call(node))
    given = {part.arg: part.value for part in node.keywords}
    if name == "arange":
        start = given.get("start") or (node.args[0] if len(node.args) > 1 else None)
        step = given.get("step") or (node.args[2] if len(node.args) > 2 else None)
        return all(part is None or is_nonnegative(part, file, seen) for part in (start, step))
    if name == "randint":
        is_bounded = len(node.args) > 2 or (len(node.args) > 1 and "size" in given)
        low = given.get("low") or (node.args[0] if is_bounded else None)
        return low is None or is_nonnegative(low, file, seen)
    if name in ("randint_like", "triu_indices", "tril_indices"):
        return name != "randint_like" or not (len(node.args) > 2 or "low" in given)
    if name in POSITIONS or name in MASKS or name in _COUNTS:
        return True
    if name in ("clamp", "clip", "clamp_min"):
        least = given.get("min") or (node.args[is_api] if len(node.args) > is_api else None)
        return is_nonnegative(least, file, seen)
    if name == "where" and is_api and len(node.args) == 1:
        return True
    if name in _LITERALS or name in ("stack", "cat", "concat", "meshgrid"):
        return bool(node.args) and all(is_nonnegative(part, file, seen) for part in node.args)
    if name not in _KEEPING:
        return False
    of = (node.args[0] if node.args else given.get("input")) if is_api else None
    if not is_api:
        assert isinstance(node.func, ast.Attribute)
        of = node.func.value
    return is_nonnegative(of, file, seen)

"""What a tensor or a list of positions takes of a tensor: a copy in torch.

In MindSpore 2.10 `part = x[positions]` remembers x, and `part[0] = 1` is written to x as well.
Elsewhere a port leaves `contiguous` out; here it is what makes the copy.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from isograd.convert.analysis.integers import is_integer
from isograd.convert.file import FileEdit
from isograd.convert.indexes import parts_of
from isograd.convert.origins import called, is_strided, is_taken_by_copy
from isograd.convert.passes.elements import may_be_positions
from isograd.convert.passes.example import Example
from isograd.convert.passes.numpy_arrays import is_array
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.places import place
from isograd.convert.tree import is_laid_out, names_of, pairs_of
from isograd.scan.names_in_place import changes_in_place

_WRITING = (ast.Assign, ast.AugAssign, ast.Subscript, ast.Call)


class TakenByCopy:
    """`part = x[mask]` where something writes into part behind it."""

    kinds = (ast.Assign, ast.For, ast.Return, ast.Call)
    examples = (
        Example(
            "what a mask takes, written to",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                part = x[y > 0]
                part[0] = 1
                return part, x
            """,
        ),
    )
    counterexamples = (
        Example(
            "what a mask takes, read",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                part = x[y > 0]
                return part * 2
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take it without the way back to its tensor; the assignment itself is for other passes."""
        if isinstance(node, ast.Return):
            _returned(node.value, file)
            return False
        if isinstance(node, ast.Call):
            _registered(node, file)
            return False
        pairs: list[tuple[ast.expr, ast.expr]]
        if isinstance(node, ast.For):
            pairs = [(ast.Name(name), node.iter) for name in names_of(node.target)]
        else:
            assert isinstance(node, ast.Assign)
            pairs = [pair for target in node.targets for pair in pairs_of(target, node.value)]
        done = set[ast.expr]()
        for target, value in pairs:
            if value in done or not isinstance(target, (ast.Name, ast.Attribute)):
                continue
            if is_laid_out(value) and ast.unparse(target) in written_around(target, value, file):
                done.add(value)
                file.replace(value, f"{file.source(value)}.contiguous()")
            elif isinstance(value, ast.Subscript) and _is_copied_and_written(target, value, file):
                done.add(value)
                _take(value, file)
        return False


class WrittenCopies:
    """`x[positions][0] = 1`: what is written into a copy at once."""

    kinds = (ast.Subscript,)
    after = ("NumpyIndices", "NumbersBesidePositions", "NegativePositions")
    before = ("Writes",)
    examples = (
        Example(
            "an element of what a mask takes",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x[y > 0][0] = 1
                return x
            """,
        ),
    )
    counterexamples = (
        Example(
            "an element of a row",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x[0][1] = 1
                return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the copy without the way back to its tensor; the write is for other passes."""
        assert isinstance(node, ast.Subscript)
        part = node.value
        if not isinstance(node.ctx, ast.Store) or not isinstance(part, ast.Subscript):
            return False
        if not isinstance(getattr(node.slice, "value", None), str) and may_be_copied(part, file):
            _take(part, file)
        return False


def may_be_copied(value: ast.Subscript, file: FileEdit) -> bool:
    """Whether an index may take a copy of a tensor: of what holds others no text does."""
    if _is_surely_copied(value, file):
        return not is_array(value, file)
    part: ast.expr = value
    while isinstance(part, ast.Subscript):
        if _root(part) is None or _holds_tensors(part.value, file):
            return False
        is_plain = all(is_integer(index, file.tree) for index in parts_of(part.slice))
        if not is_plain and may_be_positions(part.slice, value, file):
            return not is_array(part.value, file)
        part = part.value
    return False


def _holds_tensors(owner: ast.expr, file: FileEdit) -> bool:
    """Whether this is a list or a dictionary, or a list of modules."""
    is_container = isinstance(owner, ast.Name) and scope_of(owner, file).is_container(owner.id)
    return is_container or place(owner) in file.facts.lists


def _take(value: ast.Subscript, file: FileEdit) -> None:
    code = file.source(value)
    if not code.startswith(f"{file.name('composites.at')}("):  # which takes a copy by itself
        file.replace(value, f"{file.name('composites.taken')}({code})")


def _returned(value: ast.expr | None, file: FileEdit) -> None:
    """`return x[mask], y[mask]`: who asked for them may write into them."""
    for part in value.elts if isinstance(value, ast.Tuple) else [value]:
        if isinstance(part, ast.Subscript) and _is_surely_copied(part, file):
            _take(part, file)
        elif part is not None and is_laid_out(part) and _is_result_written(part, file):
            file.replace(part, f"{file.source(part)}.contiguous()")


def _registered(call: ast.Call, file: FileEdit) -> None:
    """`self.register_buffer("b", x.t())`: whoever has the module may write to it or load it."""
    if getattr(call.func, "attr", "") != "register_buffer":
        return
    for part in (*call.args[1:2], *(one.value for one in call.keywords if one.arg == "tensor")):
        if is_laid_out(part):
            file.replace(part, f"{file.source(part)}.contiguous()")
        elif any(_is_part(value, file) for value in _surely_values(part, file)):
            file.replace(part, f"{file.source(part)}.copy()")


def _is_part(value: ast.expr, file: FileEdit) -> bool:
    is_copied = isinstance(value, ast.Subscript) and _is_surely_copied(value, file)
    return is_copied or is_strided(value, file.named)


def _surely_values(part: ast.expr, file: FileEdit) -> list[ast.expr]:
    """What a name or an expression is; empty where it may be None."""
    values = [part]
    if isinstance(part, ast.Name):
        values = scope_of(part, file).values_of(part.id)
    return [] if any(isinstance(value, (ast.Constant, ast.IfExp)) for value in values) else values


def _is_result_written(value: ast.expr, file: FileEdit) -> bool:
    """Whether anything may write into what the function around a value returns."""
    function = file.tree.function(value)
    if function is None:
        return False
    if file.tree.owner(function) is None and file.settings.starting.is_taken(
        function.name, file.file
    ):
        return True
    return function.name in _written_results(file)


def _written_results(file: FileEdit) -> frozenset[str]:
    """The names of functions of which a result is written into, by a name or at once."""
    if file.written_results is None:
        found = set[str]()
        for node in file.tree.of(ast.Assign):
            pairs = [pair for target in node.targets for pair in pairs_of(target, node.value)]
            for target, value in pairs:
                root = _called_at_root(value)
                if root and ast.unparse(target) in written_around(target, node, file):
                    found.add(root)
        for part in _writing(file.tree.module, file):
            written = getattr(part, "value", None) if isinstance(part, ast.Subscript) else None
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                is_in_place = changes_in_place(part.func.attr)
                written = part.func.value if is_in_place else None
            if written is not None:
                found.add(_called_at_root(written))
        file.written_results = frozenset(found - {""})
    return file.written_results


def _called_at_root(value: ast.expr) -> str:
    """f of `f(x)`, `m.f(x)[0]` and `m.f(x).view(2)`; forward of what may be a module's call."""
    names = [""]
    while isinstance(value, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(value, ast.Call):
            names.append(getattr(value.func, "attr", getattr(value.func, "id", "")))
            value = value.func.value if isinstance(value.func, ast.Attribute) else value.func
        else:
            value = value.value
    return names[-1]


def _is_surely_copied(value: ast.Subscript, file: FileEdit) -> bool:
    part: ast.expr = value
    while isinstance(part, ast.Subscript):
        if is_taken_by_copy(part) or _holds_positions(part.slice, file):
            return True
        part = part.value
    return False


def _is_copied_and_written(
    target: ast.Name | ast.Attribute, value: ast.Subscript, file: FileEdit
) -> bool:
    part: ast.expr = value
    is_sure, may_be = _is_surely_copied(value, file), False
    while isinstance(part, ast.Subscript):
        may_be = may_be or may_be_positions(part.slice, value, file)
        is_sure = is_sure or (may_be and place(part) in file.facts.indexed)
        part = part.value
    if not is_sure and not may_be:
        return False
    is_of_tensor = written_around(target, value, file).get(ast.unparse(target))
    return is_of_tensor is not None and (is_sure or is_of_tensor)


def written_around(target: ast.expr, at: ast.AST, file: FileEdit) -> dict[str, bool]:
    """What is written into where a name is known; the attributes of objects everywhere."""
    around = file.tree.function(at) if isinstance(target, ast.Name) else None
    return _writes(around or file.tree.module, file)


def _holds_positions(index: ast.expr, file: FileEdit) -> bool:
    """Whether an index holds a mask that is turned round, or what something of torch makes."""
    return any(_is_positions(part, file) for part in parts_of(index))


def _is_positions(node: ast.expr, file: FileEdit) -> bool:
    if not isinstance(node, ast.Name):
        return _makes_positions(node, file)
    roots = [_root(value) for value in scope_of(node, file).values_of(node.id)]
    others = [root for root in roots if getattr(root, "id", "") != node.id]
    return bool(others) and all(root and _makes_positions(root, file) for root in others)


def _makes_positions(node: ast.expr, file: FileEdit) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.Compare):
        return not any(isinstance(one, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for one in node.ops)
    return file.api_of_call(node).startswith("torch.")


def _writes(scope: ast.AST, file: FileEdit) -> dict[str, bool]:
    """What something in a scope writes into; whether as it is only done to a tensor."""
    if scope in file.writes:
        return file.writes[scope]
    found: dict[str, bool] = {}
    others: list[tuple[str, str]] = []
    for node in _writing(scope, file):
        target: ast.expr | None = None
        is_of_tensor = False
        if isinstance(node, ast.Assign):
            bound, root = node.targets[0], _root(node.value)
            if isinstance(bound, ast.Name) and isinstance(root, ast.Name):
                others.append((bound.id, root.id))
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
            is_of_tensor = isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Compare))
        elif isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call):
            target, is_of_tensor = called(node, file.named)[1], True
        target = _root(target)
        if isinstance(target, (ast.Name, ast.Attribute)):
            key = ast.unparse(target)
            found[key] = found.get(key, False) or is_of_tensor
    for name, other in reversed(others):  # what is written into another name of it, or a part
        if name in found:
            found[other] = found.get(other, False) or found[name]
    file.writes[scope] = found
    return found


def _writing(scope: ast.AST, file: FileEdit) -> Sequence[ast.AST]:
    """The nodes of a function or the module that write, or give another name, in their order."""
    if file.writing is None:
        nodes = file.tree.of(*_WRITING)
        file.writing = [node for node in nodes if _writes_or_renames(node)]
    if not isinstance(scope, ast.stmt):
        return file.writing
    first = bisect_left(file.writing, scope.lineno, key=_last_line)
    last = bisect_right(file.writing, _last_line(scope), key=_last_line)
    return file.writing[first:last]


def _writes_or_renames(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return changes_in_place(name)
    return True


def _last_line(node: ast.AST) -> int:
    line: int = node.end_lineno  # type: ignore[attr-defined]  # a node of tree.nodes has a place
    return line


def _root(node: ast.expr | None) -> ast.expr | None:
    """x of `x[0][1]`; None for what is asked by a text, which is no tensor."""
    while isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return None
        node = node.value
    return node

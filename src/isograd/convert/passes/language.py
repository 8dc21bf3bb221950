"""What code asks of torch itself, and sets in it: versions, compilers, backends."""

from __future__ import annotations

import ast

from isograd.convert import layout, types_and_settings
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.knowledge.entry import Applicability

#: What only keeps its arguments.
_HOLDING = frozenset(
    "dict list tuple set frozenset OrderedDict partial defaultdict field namedtuple".split()
)
_COMPUTING = (ast.Call, ast.BinOp, ast.Compare, ast.UnaryOp, ast.Subscript, ast.Starred)


class Settings:
    """Statements that only set or tell something of torch's own machinery go away."""

    kinds = (ast.Expr, ast.Assign)
    stage = Stage.EARLY
    examples = (
        Example("a setting of cuDNN's", "torch.backends.cudnn.benchmark = True"),
        Example(
            "an assertion",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                torch._assert(x.dim() == 2, 'two axes')
                return torch.relu(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a setting of the program's own",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                x.note = True
                return torch.relu(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave the statement out, or `pass` where a block would be empty."""
        if isinstance(node, ast.Assign):
            target: ast.expr = node.targets[0]
            while isinstance(target, ast.Attribute) and target not in file.named:
                target = target.value  # a part of a setting that scan does not know
            api = file.named.get(target, "") if len(node.targets) == 1 else ""
            if not api.startswith(types_and_settings.SETTINGS):
                return False
        else:
            assert isinstance(node, ast.Expr)
            if file.api_of_call(node.value) in types_and_settings.ASSERTIONS:
                return _asserted(node, file)
            if file.api_of_call(node.value) not in types_and_settings.STATEMENTS:
                return False
        assert isinstance(node, ast.stmt)
        file.leave_out(node)
        file.uses += 1
        file.converted += 1
        return True


def _asserted(node: ast.Expr, file: FileEdit) -> bool:
    """`torch._assert(condition, message)` is `assert condition, message`."""
    call = node.value
    assert isinstance(call, ast.Call)
    if call.keywords or not 1 <= len(call.args) <= 2:
        return False
    start, end = file.text.span(call)
    if "\n" not in file.text.original[start:end]:
        first, last = file.text.span(call.args[0])[0], file.text.span(call.args[-1])[1]
        file.text.replace(start, first, "assert ")
        file.text.replace(last, end, "")
    else:
        b = file.text.span(call.args[0])[1]
        c, d = file.text.span(call.args[-1])
        file.text.replace(start, file.text.span(call.func)[1], "assert ")
        if len(call.args) == 2:
            comma = file.text.original.rindex(",", b, c)
            file.text.replace(b, comma + 1, "), (")
            after = file.text.original[d : end - 1].rstrip()
            if after.endswith(","):
                file.text.replace(d, d + len(after), "")
    file.done.update((call, *ast.walk(call.func)))
    file.uses += 1
    file.converted += 1
    return True


class Constants:
    """Constants that are computed from something unconverted while the file is imported."""

    kinds = (ast.Assign, ast.AnnAssign)
    stage = Stage.GENERAL
    examples = (
        Example(
            "a number that the machine gives at import",
            """
            LIMIT = torch.cuda.get_device_properties(0).total_memory // 2
            """,
        ),
    )
    counterexamples = (Example("a table of layers", "WAYS = {'relu': nn.ReLU}"),)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Replace the whole constant, which was not converted, so that the file imports."""
        assert isinstance(node, (ast.Assign, ast.AnnAssign))
        left = file.left_at_import.get(node)
        if left is None or node.value is None:
            return False
        inner, api = left
        for part in file.tree.above(inner):
            if part is node:
                return False
            is_called = isinstance(part, ast.Call) and (
                part.func is inner or ast.unparse(part.func).rpartition(".")[2] in _HOLDING
            )
            if isinstance(part, _COMPUTING) and not is_called:
                break
        file.replace(node.value, file.unconverted(api))
        return True


class Questions:
    """`torch.jit.is_scripting()`, `hasattr(torch, "compile")`, `torch.jit.annotate(T, x)`."""

    kinds = (ast.Call, ast.Subscript)
    stage = Stage.EARLY
    examples = (
        Example(
            "whether torch.jit compiles",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                if torch.jit.is_scripting():
                    return y
                return torch.relu(x)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a question of the program's own",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                if x.dim() == 2:
                    return y
                return torch.relu(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the answer that holds for a port."""
        if isinstance(node, ast.Subscript):
            return _final(node, file)
        assert isinstance(node, ast.Call)
        api = file.api_of_call(node)
        if api in types_and_settings.ANSWERS and not _is_known(api, file):
            layout.write(file, node, types_and_settings.ANSWERS[api])
        elif api in types_and_settings.THROUGH and len(node.args) > types_and_settings.THROUGH[api]:
            if _is_known(api, file):
                return False
            kept = node.args[types_and_settings.THROUGH[api]]
            start, end = file.text.span(node)
            inner, stop = file.text.span(kept)
            is_closed = layout.stands(file, node, file.text.raw(kept))
            file.text.replace(start, inner, "" if is_closed else "(")
            file.text.replace(stop, end, "" if is_closed else ")")
            file.done.add(node)
            file.done.update(ast.walk(node.func))
            for part in (*node.args, *node.keywords):
                if part is not kept:
                    file.forget(part)
            return True
        elif isinstance(node.func, ast.Name) and node.func.id == "hasattr":
            return _asks_for_name(node, file)
        else:
            return False
        file.forget(node)
        file.uses += 1
        file.converted += 1
        return True


def _is_known(api: str, file: FileEdit) -> bool:
    entry = file.entry(api)
    return (
        entry is not None and bool(entry.rewrite) and entry.applicability is not Applicability.HAND
    )


def _asks_for_name(node: ast.Call, file: FileEdit) -> bool:
    """`hasattr(torch.nn.functional, "x")`: true of a port where x has a counterpart."""
    if len(node.args) != 2 or node.args[0] not in file.named:
        return False
    name = node.args[1]
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return False
    api = file.names.canonical(f"{file.named[node.args[0]]}.{name.value}")
    entry = file.entry(api)
    is_there = entry is not None and entry.applicability is not Applicability.HAND
    file.replace(node, str(is_there))
    file.forget(node)
    file.uses += 1
    file.converted += 1
    return True


def _final(node: ast.Subscript, file: FileEdit) -> bool:
    """`torch.jit.Final[int]` is an int."""
    if file.named.get(node.value) != "torch.jit.Final":
        return False
    start, end = file.text.span(node)
    inner, stop = file.text.span(node.slice)
    file.text.replace(start, inner, "")
    file.text.replace(stop, end, "")
    file.done.update(ast.walk(node.value))
    return True

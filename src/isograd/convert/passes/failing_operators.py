"""Errors of operators are raised in the `try` around them, and caught as torch's are."""

from __future__ import annotations

import ast
from itertools import zip_longest

from isograd.convert.analysis.failing import Around, computes
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
#: What catches errors of torch's operators by their common bases.
_ANY = frozenset(("RuntimeError", "Exception", "BaseException"))
#: What a few operators of torch's raise.
_SOME = frozenset(("ValueError", "IndexError", "TypeError"))
_COMPUTED = "composites.computed"
_RECORDING = "composites.record_again"


class FailingOperators:
    """MindSpore computes later than it is called, and its errors are often of another class."""

    kinds = (ast.Try,)
    examples = (
        Example(
            "a view that may not be possible",
            """
            def f(x: torch.Tensor):
                try:
                    y = x.view(-1)
                except RuntimeError:
                    y = x.reshape(-1)
                return y
            """,
        ),
        Example(
            "a result that is returned",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                try:
                    return torch.cat([x, y])
                except (RuntimeError, KeyError) as error:
                    print(error)
                return None
            """,
        ),
        Example(
            "a function of the file, until it succeeds",
            """
            def step(x: torch.Tensor):
                return torch.linalg.cholesky(x)

            def f(x):
                while True:
                    try:
                        y = step(x)
                        break
                    except Exception:
                        x = x * 2
                return y
            """,
        ),
    )
    counterexamples = (
        Example(
            "an import",
            """
            try:
                import apex
            except Exception:
                apex = None
            """,
        ),
        Example(
            "a text that is read, and a clause of another kind",
            """
            def number(text):
                return int(text)

            def f(text: str, x: torch.Tensor):
                try:
                    n = number(text)
                except Exception:
                    n = 0
                try:
                    return x + n
                except KeyboardInterrupt:
                    return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Wait behind calls of the body; a clause that names RuntimeError also asks the runtime."""
        assert isinstance(node, ast.Try)
        if not _waits(node, file):
            return False
        _wait_in(node.body, _around(node, file), file)
        for handler in node.handlers:
            _widen(handler, file)
            if file.settings.records_gradients:
                _record_in(handler, file)
        return False


def _waits(node: ast.Try, file: FileEdit) -> bool:
    """Whether a `try` is about errors that an operator in its body may have."""
    if not _all_caught(node, file) & (_ANY | _SOME):
        return False
    around = _around(node, file)
    return any(computes(part, file, around) for part in node.body)


def _all_caught(node: ast.Try, file: FileEdit) -> set[str]:
    return {name for handler in node.handlers for name in _caught(handler, file)}


def _around(node: ast.Try, file: FileEdit) -> Around:
    caught = _all_caught(node, file)
    return Around(bool(caught & _ANY), "RuntimeError" in caught)


def _caught(handler: ast.ExceptHandler, file: FileEdit) -> list[str]:
    """The classes of Python's that a clause names; the base of all where it names none."""
    if handler.type is None:
        return ["BaseException"]
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return [name for name in names if name not in file.tree.own_names]


def _wait_in(body: list[ast.stmt], around: Around, file: FileEdit) -> None:
    """Write waits into a block; what an inner `try` sees to is left out."""
    for statement, following in zip_longest(body, body[1:]):
        if isinstance(statement, _SIMPLE):
            _wait_for(statement, following, around, file)
        elif not isinstance(statement, _DEFINITIONS):
            is_seen_to = isinstance(statement, ast.Try) and _waits(statement, file)
            for field, value in ast.iter_fields(statement):
                if isinstance(value, list) and not (is_seen_to and field == "body"):
                    _wait_in([part for part in value if isinstance(part, ast.stmt)], around, file)
                    for part in value:
                        if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                            _wait_in(part.body, around, file)


def _wait_for(
    statement: ast.stmt, following: ast.stmt | None, around: Around, file: FileEdit
) -> None:
    value: ast.expr | None = getattr(statement, "value", None)
    if value is None or not computes(statement, file, around) or _reads(value):
        return
    if isinstance(statement, ast.Return) or not _is_undone(statement, file):
        code = file.source(value)
        if isinstance(value, ast.Tuple) and not code.startswith("("):
            code = f"({code})"
        file.replace(value, f"{file.name(_COMPUTED)}({code})")
    elif not (
        isinstance(following, (ast.Assign, ast.Expr))
        and computes(following, file, around)
        and _is_undone(following, file)
    ):
        _wait_behind(statement, file)


def _is_undone(statement: ast.stmt, file: FileEdit) -> bool:
    """Whether a statement leaves nothing behind that is read where it has failed.

    `x = x.view(4)` must not bind x to a tensor that cannot be computed; nor in a loop y, which the
    turn before may have bound.
    """
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, (ast.Attribute, ast.Subscript)) for part in names):
        return False
    around = next(part for part in file.tree.above(statement) if isinstance(part, ast.Try))
    scope = file.tree.scope(statement)
    inside = set(file.tree.walked(around))
    bound = {part.id for part in names if isinstance(part, ast.Name)}
    if any(isinstance(part, _LOOPS) for part in file.tree.above(around)):
        # An earlier turn may have bound it.
        after = (part for part in file.tree.walked(scope) if part not in inside)
        if any(isinstance(part, ast.Name) and part.id in bound for part in after):
            return False
    return not any(
        getattr(part, "id", getattr(part, "arg", "")) in bound
        and (isinstance(part, ast.arg) or isinstance(getattr(part, "ctx", None), ast.Store))
        for part in file.tree.walked(scope)
        if part not in inside
    )


def _reads(value: ast.expr) -> bool:
    """Whether a value is read as it is computed: `float(x.sum())`, `print(x.tolist())`."""
    while isinstance(value, ast.Call):
        if getattr(value.func, "attr", "") in ("item", "tolist", "numpy"):
            return True
        if getattr(value.func, "id", "") not in ("print", "float", "int", "bool", "str", "round"):
            return False
        if not value.args:
            return False
        value = value.args[-1]
    return False


def _wait_behind(statement: ast.stmt, file: FileEdit) -> None:
    """Write the call on a line of its own where the statement has its lines for itself."""
    call = f"{file.name(_COMPUTED)}()"
    text = file.text
    start, end = text.span(statement)
    indent = text.original[text.line_start(statement.lineno) : start]
    assert statement.end_lineno is not None
    stop = text.line_end(statement.end_lineno)
    behind = text.original[end:stop].strip()
    if statement in file.removed:
        return
    if indent.strip() or behind[:1] not in ("", "#") or text.covering(stop) is not None:
        file.replace(statement, f"{file.source(statement)}; {call}")  # `try: x = f(y)`
    else:
        text.insert(stop, f"{text.newline}{indent}{call}")


def _widen(handler: ast.ExceptHandler, file: FileEdit) -> None:
    """Let a clause that names RuntimeError, but not the class MindSpore has instead, catch both."""
    names = _caught(handler, file)
    if handler.type is None or "RuntimeError" not in names:
        return
    if {"Exception", "BaseException"} & {*names} or {*_SOME} <= {*names}:
        return
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if any(isinstance(part, ast.Starred) for part in parts):
        return
    kinds = ", ".join(file.source(part) for part in parts)
    file.replace(handler.type, f"{file.name('composites.errors_of')}({kinds})")


def _record_in(handler: ast.ExceptHandler, file: FileEdit) -> None:
    """Write the call by which recording goes on: an operator that fails has MindSpore stop it."""
    first = handler.body[0]
    if isinstance(first, ast.Raise):
        return
    call = f"{file.name(_RECORDING)}()"
    text = file.text
    start = text.line_start(first.lineno)
    indent = text.original[start : text.span(first)[0]]
    if indent.strip():
        file.replace(first, f"{call}; {file.source(first)}")  # `except ValueError: pass`
    else:
        text.insert(start, f"{indent}{call}{text.newline}")

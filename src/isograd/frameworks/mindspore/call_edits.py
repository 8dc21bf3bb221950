"""The edit of a line that a replaced value means: an argument of a call, or a call less.

A fix is proved on values.  Here it is written into the user's source, where the line's own call is
the same function with other plain arguments, or a stop of gradients; else there is no edit.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isograd.edits import SourceEdit
from isograd.frameworks.base import PortFix

STOPS = ("stop_gradient", "detach", "StopGradient")
#: MindSpore's names of torch's arguments, where they differ.
_NAMES = {
    "dim": ("axis", "dim"),
    "negative_slope": ("alpha", "negative_slope"),
    "keepdim": ("keep_dims", "keepdims", "keepdim"),
    "dims": ("axis", "dims"),
    "tensors": ("tensors",),
    "p": ("p",),
}
#: MindSpore's functions by torch's name, where it differs.
_FUNCTIONS = {"cat": ("cat", "concat"), "max_pool2d": ("max_pool2d",)}
_UNKNOWN = object()


def replacing_edits(
    fix: PortFix, place: tuple[str, int] | None, function: str
) -> tuple[SourceEdit, ...]:
    """The edits of the user's line at which a value is replaced; nothing where none is plain.

    function: the port's own function there, by MindSpore's name.
    """
    if place is None:
        return ()
    path, line = place
    source = "".join(linecache.getlines(path))
    calls = list(_calls(source, line))
    if fix.function == "identity" and fix.arguments == {"input": "@argument.0"}:
        passing = [call for call in calls if _name(call) in STOPS or _narrows(call)]
        found = [_without(path, source, call) for call in passing]
        return tuple(edit for edit in found if edit is not None)
    named = _FUNCTIONS.get(fix.function, (fix.function,))
    same = [call for call in calls if _name(call) in named]
    if len(same) != 1 or function.strip("_") not in named:
        return ()
    edit = _with_arguments(path, source, same[0], fix.arguments)
    return () if edit is None else (edit,)


def argument_edits(
    place: tuple[str, int], name: str, wanted: Mapping[str, Any]
) -> tuple[SourceEdit, ...]:
    """The edit of the only call of this name on a line: these arguments, by its own names."""
    path, line = place
    source = "".join(linecache.getlines(path))
    named = [call for call in _calls(source, line) if _name(call) == name]
    edit = _with_arguments(path, source, named[0], wanted) if len(named) == 1 else None
    return () if edit is None else (edit,)


def _calls(source: str, line: int) -> Iterator[ast.Call]:
    """The calls that stand on a line."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno):
            yield node


def _name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _narrows(call: ast.Call) -> bool:
    """Whether a call casts to sixteen bits: ``x.astype(ms.float16)``, ``ops.cast(x, ms.half)``."""
    if _name(call) in ("half", "bfloat16"):
        return True
    last = call.args[-1] if call.args else None
    dtype = last.attr if isinstance(last, ast.Attribute) else getattr(last, "id", "")
    return _name(call) in ("astype", "to", "cast", "type") and dtype in (
        *("float16", "half", "bfloat16"),
    )


def _without(path: str, source: str, call: ast.Call) -> SourceEdit | None:
    """The call replaced by what it is given: ``ops.stop_gradient(x)``, ``x.detach()``."""
    of_tensor = isinstance(call.func, ast.Attribute) and _name(call) not in ("cast", *STOPS[::2])
    given: ast.expr | None = call.args[0] if call.args and not call.keywords else None
    if of_tensor and isinstance(call.func, ast.Attribute):
        given = call.func.value
    old = ast.get_source_segment(source, call)
    new = ast.get_source_segment(source, given) if given is not None else None
    if old is None or new is None:
        return None
    if isinstance(given, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda)):
        new = f"({new})"
    return SourceEdit(path, call.lineno, call.col_offset, old, new)


def _with_arguments(
    path: str, source: str, call: ast.Call, wanted: Mapping[str, Any]
) -> SourceEdit | None:
    """The call with the plain arguments that differ from the wanted ones."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    parameters = _parameters(path, call)
    parts = [ast.get_source_segment(source, argument) or "" for argument in call.args]
    keywords = {k.arg: k.value for k in call.keywords}
    changed = dict[str, Any]()
    for name, value in wanted.items():
        if not _is_plain(value):
            continue
        for own in _NAMES.get(name, (name,)):
            if own not in keywords and own not in parameters:
                continue
            position = list(parameters).index(own) if own in parameters else len(parts)
            given = keywords.get(own, call.args[position] if position < len(parts) else None)
            if given is None and own not in parameters:
                continue
            now = parameters[own] if given is None else _literal(given)
            if now is _UNKNOWN or now == value:
                break
            if own not in keywords and position < len(parts):
                parts[position] = repr(value)
                changed[own] = None
            else:
                changed[own] = repr(value)
            break
    if not changed:
        return None
    for keyword in call.keywords:
        own_text = ast.get_source_segment(source, keyword.value) or ""
        new = changed.pop(str(keyword.arg), None)
        parts.append(f"{keyword.arg}={own_text if new is None else new}")
    parts += [f"{name}={text}" for name, text in changed.items() if text is not None]
    old = ast.get_source_segment(source, call) or ""
    function = ast.get_source_segment(source, call.func) or ""
    return SourceEdit(path, call.lineno, call.col_offset, old, f"{function}({', '.join(parts)})")


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return not value.startswith("@")
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float))


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _UNKNOWN


def _parameters(path: str, call: ast.Call) -> dict[str, Any]:
    """The parameters of the called function with their defaults; empty where they are not known."""
    function = _function(path, call.func)
    if function is None:
        return {}
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: _UNKNOWN if p.default is p.empty else p.default for p in found}


def _function(path: str, node: ast.expr) -> Any:
    """The function of a module that a dotted name means; nothing of the user's is run."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    module = next((m for m in list(sys.modules.values()) if _file(m) == path), None)
    found: Any = vars(module).get(node.id) if module is not None else None
    for part in reversed(parts):
        if not inspect.ismodule(found):
            return None
        found = getattr(found, part, None)
    return found if callable(found) else None


def _file(module: Any) -> str:
    return str(getattr(module, "__file__", "") or "")


def together(edits: Sequence[SourceEdit]) -> tuple[SourceEdit, ...]:
    """Each edit once, and none inside another: the outer one was made of the unchanged text."""
    kept: list[SourceEdit] = []
    for edit in sorted(set(edits), key=lambda e: (e.path, e.line, e.column, -len(e.old))):
        inside = any(
            e.path == edit.path
            and e.line == edit.line
            and e.column <= edit.column < e.column + len(e.old)
            for e in kept
        )
        if not inside:
            kept.append(edit)
    return tuple(kept)

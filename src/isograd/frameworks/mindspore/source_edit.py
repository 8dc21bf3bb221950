"""An edit of the user's source in words: the call as it stands, and as it should be.

Positions come from the syntax tree of the file, so strings, comments and line breaks in the call
do no harm.  Nothing is written.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isograd.edits import SourceEdit
from isograd.frameworks.base import PortFix
from isograd.frameworks.mindspore.construction import Construction, signature_of
from isograd.tensors import TensorValue

_LONGEST = 120


def rebuilding_text(
    construction: Construction, changed: Mapping[str, Any]
) -> tuple[str, str | None]:
    """How the call that builds a cell must read, and ``file:line``."""
    words = "build it with " + ", ".join(f"{k}={v!r}" for k, v in changed.items())
    if construction.place is None:
        return words, None
    path, line = construction.place
    source = "".join(linecache.getlines(path))
    call = _building_call(source, line, construction.kind.__name__)
    edited = _edited(source, call, construction, changed) if call is not None else None
    if call is None or edited is None:
        return words, construction.where
    before = _one_line(ast.get_source_segment(source, call) or "")
    text = f"{before} → {edited}"
    if len(text) > _LONGEST:
        text = _short(source, call, changed)
    return text, f"{Path(path).name}:{call.lineno}"


def rebuilding_edit(
    construction: Construction, changed: Mapping[str, Any]
) -> tuple[SourceEdit, ...]:
    """The edit of the call that builds a cell; nothing where the call is not plain."""
    if construction.place is None:
        return ()
    path, line = construction.place
    source = "".join(linecache.getlines(path))
    call = _building_call(source, line, construction.kind.__name__)
    edited = _edited(source, call, construction, changed) if call is not None else None
    if (
        call is None
        or edited is None
        or any(v is not None and _is_long(v) for v in changed.values())
    ):
        return ()
    return (_edit_of(path, source, call, edited),)


def _is_long(value: Any) -> bool:
    return not isinstance(value, (bool, int, float, str, tuple))


def _edit_of(path: str, source: str, node: ast.expr, new: str) -> SourceEdit:
    old = ast.get_source_segment(source, node) or ""
    return SourceEdit(path, node.lineno, node.col_offset, old, new)


def replacing_text(place: tuple[str, int] | None) -> tuple[str, str | None]:
    """The user's line that calls a function, and ``file:line``."""
    if place is None:
        return "", None
    path, line = place
    return linecache.getline(path, line).strip(), f"{Path(path).name}:{line}"


def replacement_in_words(fix: PortFix) -> str:
    """What a fix computes where a value leaves a call, with its plain arguments."""
    plain = [
        f"{name}={value!r}"
        for name, value in fix.arguments.items()
        if value is not None and not isinstance(value, (tuple, TensorValue)) and not _refers(value)
    ]
    call = f"{fix.function}({', '.join(['…', *plain])})"
    if fix.target.startswith("input_of."):
        return f"pass {call} to it"
    return f"use {call} of its result" if fix.target.startswith("pin.") else f"return {call}"


def _refers(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("@")


def _building_call(source: str, line: int, name: str) -> ast.Call | None:
    """The only call of this name on this line; None where there is none or several."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        and _name(node.func) == name
    ]
    texts = {ast.get_source_segment(source, call) for call in calls}
    return calls[0] if len(texts) == 1 else None


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _edited(
    source: str, call: ast.Call, construction: Construction, changed: Mapping[str, Any]
) -> str | None:
    """The call with these arguments changed or added; None where they are given as a whole."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(
        k.arg is None for k in call.keywords
    ):
        return None
    signature = signature_of(construction.kind)
    order = list(signature.parameters) if signature is not None else []
    parts = [ast.get_source_segment(source, argument) or "" for argument in call.args]
    rest = dict(changed)
    for position, name in enumerate(order[: len(parts)]):
        if name in rest:
            parts[position] = repr(rest.pop(name))
    for keyword in call.keywords:
        value = ast.get_source_segment(source, keyword.value) or ""
        if keyword.arg in rest:
            value = repr(rest.pop(keyword.arg))
        parts.append(f"{keyword.arg}={value}")
    parts += [f"{name}={value!r}" for name, value in rest.items()]
    function = ast.get_source_segment(source, call.func) or ""
    return _one_line(f"{function}({', '.join(parts)})")


def _short(source: str, call: ast.Call, changed: Mapping[str, Any]) -> str:
    """The edit of a long call: only what is changed."""
    function = _one_line(ast.get_source_segment(source, call.func) or "")
    own = {
        k.arg: _one_line(ast.get_source_segment(source, k.value) or "")
        for k in call.keywords
        if k.arg in changed
    }
    before = ", ".join(["…", *[f"{name}={value}" for name, value in own.items()]])
    after = ", ".join(["…", *[f"{name}={value!r}" for name, value in changed.items()]])
    return f"{function}({before}) → {function}({after})"


def _one_line(text: str) -> str:
    """Without line breaks, and without the comma that ends a call of several lines."""
    short = " ".join(text.split()).replace("( ", "(")
    return short.replace(", )", ")").replace(" )", ")")

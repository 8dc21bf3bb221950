"""How a compiled step's dataclasses and named tuples are written, in place of single nodes."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping

from isograd.convert.text import Text
from isograd.convert.training.records import Record

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: The text of a node with what is written inside it.
Source = Callable[[ast.AST], str]
#: What is written in place of a node.
Made = Callable[[Source], str]
Written = dict[ast.AST, Made]


def is_maker(function: ast.FunctionDef) -> bool:
    """Whether a function makes compiled steps."""
    return "_isograd_kept" in _decorators(function)


def inner(maker: ast.FunctionDef, *, is_step: bool) -> list[ast.FunctionDef]:
    """The steps that a function makes, or their forward parts."""
    functions = [part for part in maker.body if isinstance(part, ast.FunctionDef)]
    return [one for one in functions if ("_isograd_jit" in _decorators(one)) is is_step]


def _decorators(function: _Function) -> list[str]:
    return [getattr(one, "id", "") for one in function.decorator_list]


def returned(forward: ast.FunctionDef) -> list[ast.expr]:
    """What the forward part of a step returns beside its loss."""
    last = forward.body[-1]
    value = last.value if isinstance(last, ast.Return) else None
    return value.elts[1:] if isinstance(value, ast.Tuple) else []


def steps(maker: ast.FunctionDef, shown: list[ast.expr]) -> Iterator[tuple[ast.AST, Made]]:
    """Steps take and return objects; between them is what a graph holds.

    shown: what the forward part returns that may be one.
    """
    for step in inner(maker, is_step=True)[:1]:  # the second takes and returns no values
        first, indent = step.decorator_list[0], " " * step.col_offset
        yield first, functools.partial(_above, f"_isograd_with_records\n{indent}@", first, "")
    for part in shown:
        yield part, functools.partial(_above, "_isograd_shown(", part, ")")


def _above(before: str, node: ast.AST, behind: str, source: Source) -> str:
    return f"{before}{source(node)}{behind}"


def dictionary(call: ast.Call) -> Made:
    """An OrderedDict as a dictionary, with the same items."""

    def made(source: Source) -> str:
        pairs = call.args[0].elts if call.args else []  # type: ignore[attr-defined] # a list
        items = [f"{source(key)}: {source(value)}" for key, value in (p.elts for p in pairs)]
        items += [f'"{one.arg}": {source(one.value)}' for one in call.keywords]
        return "{" + ", ".join(items) + "}"

    return made


def making(record: Record, given: Mapping[str, ast.expr]) -> Made:
    """An object of these values; defaults stand in another place of the text."""
    own = {id(value) for value in record.fields.values()}

    def made(source: Source) -> str:
        values = [ast.unparse(v) if id(v) in own else source(v) for v in given.values()]
        if record.is_tuple:
            return f"_isograd_named_tuple({', '.join([quoted(record.name), *values])})"
        names = "".join(f'"{name}", ' for name in given).rstrip()
        names = names if len(given) == 1 else names.rstrip(",")
        return f"_isograd_record({', '.join([quoted(record.name), f'({names})', *values])})"

    return made


def quoted(name: str) -> str:
    """A name as a text."""
    return f'"{name}"'


def noting(record: Record) -> Made:
    """What stands beside a class so that the runtime knows it by its name."""
    if isinstance(record.node, ast.ClassDef):
        return lambda source: "@_isograd_record_class\n"
    return lambda source: f"\n_isograd_record_class({record.name})"


def reading(node: ast.Attribute, place: int | None) -> Made:
    """A field of what may be a record; place: that of a named tuple."""
    at = "" if place is None else f", {place}"
    return lambda source: f'_isograd_field({source(node.value)}, "{node.attr}"{at})'


def named_field(call: ast.Call, me: str) -> Made:
    """`getattr(self, name)` of a record."""
    return lambda source: f"_isograd_field({me}, {source(call.args[1])})"


def fields_of(me: str) -> Made:
    """`vars(self)` of a record."""
    return lambda source: f"_isograd_fields({me})"


def calling(call: ast.Call, cls: str, me: str) -> Made:
    """A method of a record, of its class."""
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr

    def made(source: Source) -> str:
        given = [source(one) for one in call.args]
        named = ((f"{one.arg}=" if one.arg else "**", one.value) for one in call.keywords)
        given += [f"{before}{source(value)}" for before, value in named]
        return f"{cls}.{name}({', '.join([me, *given])})"

    return made


def asking(call: ast.Call, asked: str) -> Made:
    """`isinstance` of which the graph's tuple is none."""
    return lambda source: f"({source(call)} and not _isograd_is_record({asked}))"


def element(node: ast.Subscript) -> Made:
    """`x[key]` of what may be a record."""

    def made(source: Source) -> str:
        key = node.slice
        if isinstance(key, ast.Slice):
            bounds = [source(b) if b is not None else "None" for b in (key.lower, key.upper)]
            bounds += [source(key.step)] if key.step is not None else []
            return f"_isograd_element({source(node.value)}, slice({', '.join(bounds)}))"
        return f"_isograd_element({source(node.value)}, {source(key)})"

    return made


def edits_of(text: str, written: Written) -> list[tuple[int, int, str]]:
    """The edits of a file's text, inner nodes before those around them."""
    own = Text(text)

    def size(node: ast.AST) -> int:
        start, end = own.span(node)
        return end - start

    def source(node: ast.AST) -> str:
        return own.source(*own.span(node))

    for node in sorted(written, key=size):
        start, end = own.span(node)
        made = written[node](source)
        if isinstance(node, ast.ClassDef):
            lines = [node.lineno, *(one.lineno for one in node.decorator_list)]
            own.insert(own.line_start(min(lines)), made)
        elif isinstance(node, ast.Assign):
            own.insert(end, made)
        else:
            own.replace(start, end, made)
    return [(edit.start, edit.end, edit.text) for edit in own.edits()]

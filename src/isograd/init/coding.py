"""The text of an expression in the written file: constants put in, names spelled in full."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Mapping

from isograd.init.values import Network, Output, Parts, Value

Lookup = Callable[[str], Value | None]


def text(value: Value, *, is_built: bool = False) -> str | None:
    """How a value is written there, or None where it cannot be.

    A network is `model`; with is_built it is the text that builds it.
    """
    if isinstance(value, Network):
        return value.construction if is_built else "model"
    if not isinstance(value, Parts):
        return value.code
    parts = [text(part, is_built=is_built) for part in value.items]
    if value.code is None or None in parts:
        return None
    if value.keys is not None:
        pairs = [f"{key!r}: {part}" for key, part in zip(value.keys, parts, strict=True)]
        return "{" + ", ".join(pairs) + "}"
    joined = ", ".join(part for part in parts if part is not None)
    return f"({joined},)" if value.is_tuple else f"[{joined}]"


def atom(code: str) -> str:
    """A text that an attribute, a call or an index can follow."""
    node = ast.parse(code, mode="eval").body
    is_atom = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return code if is_atom else f"({code})"


def member_text(owner: Value, name: str) -> str | None:
    """The text of `owner.name`."""
    before = text(owner)
    return None if before is None else f"{atom(before)}.{name}"


def as_value(code: str | None) -> Value:
    """What is no more than its text; a part of the output where that is in it."""
    if code is None:
        return Value()
    return Output(code) if "output" in free_names(code) else Value(code)


def free_names(code: str | None) -> set[str]:
    """Which of `output` and `model` a text uses."""
    if code is None:
        return set()
    names = {n.id for n in ast.walk(ast.parse(code, mode="eval")) if isinstance(n, ast.Name)}
    return names & {"output", "model"}


def call_text(
    function: str | None,
    positional: Iterable[Value],
    keywords: Mapping[str, Value],
    *,
    is_built: bool = False,
) -> str | None:
    """The text of a call; is_built: networks among its arguments are built there."""
    parts = [text(value, is_built=is_built) for value in positional]
    named = {word: text(value, is_built=is_built) for word, value in keywords.items()}
    if function is None or None in parts or None in named.values():
        return None
    shown = [part for part in parts if part is not None]
    shown += [f"{word}={value}" for word, value in named.items()]
    return f"{atom(function)}({', '.join(shown)})"


def with_names(node: ast.expr | ast.slice, lookup: Lookup) -> str | None:
    """The text of an expression with each name as it is called there."""
    copy = ast.parse(ast.unparse(node) if not isinstance(node, ast.Slice) else "0", mode="eval")
    own: set[str] = set()
    for part in ast.walk(copy):
        if isinstance(part, ast.comprehension):
            own |= {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
        elif isinstance(part, ast.Lambda):
            own |= {a.arg for a in part.args.args}
    try:
        return ast.unparse(_Names(lookup, own).visit(copy.body))
    except _Inexpressible:
        return None


def subscript_text(owner: Value, node: ast.Subscript, lookup: Lookup) -> str | None:
    """The text of `owner[...]`."""
    before = text(owner)
    whole = ast.Subscript(ast.Name("_", ast.Load()), node.slice, ast.Load())
    after = with_names(
        ast.fix_missing_locations(whole), lambda n: Value(n) if n == "_" else lookup(n)
    )
    return None if before is None or after is None else f"{atom(before)}{after[1:]}"


class _Inexpressible(Exception):  # noqa: N818 - it ends one attempt
    """A name that means nothing in another file."""


class _Names(ast.NodeTransformer):
    def __init__(self, lookup: Lookup, own: set[str]) -> None:
        self._lookup = lookup
        self._own = own

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name by what it is bound to."""
        if node.id in self._own:
            return node
        found = self._lookup(node.id)
        if found is None and hasattr(builtins, node.id):
            return node
        code = text(found) if found is not None else None
        if code is None:
            raise _Inexpressible
        made: ast.expr = ast.parse(code, mode="eval").body
        return made

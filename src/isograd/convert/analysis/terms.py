"""Where values come from, as far as one file says it; `Holdings` looks at all files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from isograd.scan.values import Api, ClassInfo, FunctionInfo, Made

CONTAINERS = frozenset(("torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"))


class Term:
    """Where a value comes from."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Known(Term):
    """A layer, a class or a function."""

    value: Made | Api | ClassInfo | FunctionInfo


@dataclass(frozen=True, slots=True)
class Several(Term):
    """Any of some; of none: a number, a text, None."""

    terms: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown(Term):
    """Anything."""


@dataclass(frozen=True, slots=True)
class Own(Term):
    """`self`: an instance of a class or of one that is derived from it."""

    of: ClassInfo


@dataclass(frozen=True, slots=True)
class Parameter(Term):
    """A parameter of a function, with its default."""

    name: str
    default: Term | None


@dataclass(frozen=True, slots=True)
class Called(Term):
    """What a call returns."""

    function: Term


@dataclass(frozen=True, slots=True)
class Member(Term):
    """An attribute by its name."""

    owner: Term
    name: str


@dataclass(frozen=True, slots=True)
class Element(Term):
    """Any element."""

    of: Term


@dataclass(frozen=True, slots=True)
class Row(Term):
    """A list, or a container of modules: its elements, with their names where they have some."""

    elements: tuple[tuple[str, Term], ...] = ()


NOTHING = Several()
UNKNOWN = Unknown()


def several(terms: Iterable[Term]) -> Term:
    """Any of these."""
    found: dict[Term, None] = {}
    for term in terms:
        found.update(dict.fromkeys(term.terms if isinstance(term, Several) else (term,)))
    return next(iter(found)) if len(found) == 1 else Several(tuple(found))

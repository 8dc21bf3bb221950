"""Where values come from, as far as one file says it; `Holdings` looks at all files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from isograd.convert.places import Place
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


@dataclass
class OfClass:
    """What a class binds: attributes, by their owners, what is put into them, and what its methods
    return.

    computed: what is set by names that are computed, with how these begin.
    """

    attributes: dict[str, list[tuple[Term, Term]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    put: dict[str, list[Term]] = field(default_factory=lambda: defaultdict(list))
    methods: dict[str, Term] = field(default_factory=dict)
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    computed: list[tuple[str, Term]] = field(default_factory=list)


@dataclass
class Holding:
    """What a file says.  classes: of its own.  others: bound to attributes of anything but self.

    functions: their parameters and what they return.  by_name: what
    arguments are given by their names, in calls and dictionaries.  by_place: classes that are
    given by place, with what is called.  owners: whose attributes are read.
    """

    classes: dict[ClassInfo, OfClass] = field(default_factory=lambda: defaultdict(OfClass))
    others: OfClass = field(default_factory=OfClass)
    functions: dict[FunctionInfo, tuple[tuple[str, ...], Term]] = field(default_factory=dict)
    by_name: dict[str, set[Term]] = field(default_factory=lambda: defaultdict(set))
    by_place: set[tuple[Term, int, Term]] = field(default_factory=set)
    owners: dict[Place, Term] = field(default_factory=dict)


def several(terms: Iterable[Term]) -> Term:
    """Any of these."""
    found: dict[Term, None] = {}
    for term in terms:
        found.update(dict.fromkeys(term.terms if isinstance(term, Several) else (term,)))
    return next(iter(found)) if len(found) == 1 else Several(tuple(found))

"""What a hypothesis is: one way in which a port may compute something else.

A hypothesis about a function says at which functions of the reference it applies, with which values
it is worth trying, what the function yields under it (in torch, on the reference's side), how the
port is mended, and how it reads.  Its examples are its tests and its documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from isograd.frameworks.base import FunctionSite, Intervention, Operand

Values = Mapping[str, Any]

#: The rank of most hypotheses, and of those that are named where nothing else explains as much.
USUAL, RARE = 5, 7
#: Searches go no further: e**-80 on a logarithmic scale, a share of 1e-9 of its ends.
_FARTHEST_LOG, _FARTHEST_LOGIT = 80.0, 20.0
_SMALLEST_SHARE = 1e-9


class Call(Protocol):
    """A function call as a change sees it (`isograd.frameworks.torch.interventions.SiteCall`)."""

    function: str
    arguments: dict[str, Any]
    module: Any
    number: int
    run: Callable[..., Any]

    def __getitem__(self, name: str) -> Any:
        """An argument by torch's name."""
        ...

    def together(self, name: str, changes: tuple[Intervention, ...]) -> Any:
        """Run the module whose call this is, named `name`, with changes at places within it."""
        ...


@dataclass(frozen=True)
class Example:
    """A pair of small networks in which this cause is present.

    reference, port: expressions of `x` (and the further inputs) in torch and MindSpore; `F` is
    torch.nn.functional; modules: attribute → (torch expression, MindSpore expression), used as
    `self.NAME(x)`; inputs: shape of each argument, in order, named x, y, z; integers are drawn
    below `integers` for the names in it.  values: what must be reported as the port's value.
    proved: the fix must also be shown on the port.  is_loss: the expressions are losses of the
    output x and the targets y, z.  also: other ids that this port rightly gets.
    trains: with an optimizer, because running statistics are judged in training.
    """

    reference: str
    port: str
    inputs: tuple[tuple[int, ...], ...] = ((4, 6, 8),)
    modules: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)
    port_value: Any = None
    proved: bool = False
    mode: str = "train"
    is_loss: bool = False
    also: tuple[str, ...] = ()
    trains: bool = False


class Scale(Enum):
    """On which scale a number is searched."""

    LINEAR = "linear"
    LOG = "log"
    LOGIT = "logit"


@dataclass(frozen=True)
class Number:
    """A number that is estimated from the port's tensors.

    name: the key of the values under which `change` gets it; of a rule, a field of it ("lr" is a
    factor on all learning rates, "lr.3" that of step 3).
    grid: where to start; usual: values that people write, preferred where they fit as well.
    may_vanish: whether 0 is a value of it, and not another function.
    """

    name: str
    grid: tuple[float, ...]
    scale: Scale = Scale.LOG
    usual: tuple[float, ...] = ()
    may_vanish: bool = True

    def to_scale(self, value: float) -> float:
        """The number on the scale of the search."""
        if self.scale is Scale.LINEAR:
            return value
        if self.scale is Scale.LOG:
            return math.log(max(value, 1e-300))
        value = min(max(value, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE)
        return math.log(value / (1.0 - value))

    def from_scale(self, place: float) -> float:
        """The number at a place of the scale."""
        if self.scale is Scale.LINEAR:
            return place
        if self.scale is Scale.LOG:
            return math.exp(min(max(place, -_FARTHEST_LOG), _FARTHEST_LOG))
        return 1.0 / (1.0 + math.exp(-min(max(place, -_FARTHEST_LOGIT), _FARTHEST_LOGIT)))


@dataclass(frozen=True)
class Hypothesis:
    """One way in which a port may compute something else.

    A `FunctionHypothesis` changes calls of functions, a `RuleHypothesis` (`update/hypotheses.py`)
    the rule of an optimizer.  Each says where it applies and what is computed under it (`change`).

    name: unique among those of its class; id: the cause id.
    numbers: what is estimated; none for what is there or not.
    rank: among hypotheses that explain a port alike, one of the lowest rank is named.
    """

    name: str
    id: str
    numbers: tuple[Number, ...] = field(default=(), kw_only=True)
    rank: int = field(default=USUAL, kw_only=True)


@dataclass(frozen=True)
class Surroundings:
    """What is known of a subject beside its functions.

    root: the module that is replayed ("" is the network); mode: "train" or "eval"; is_loss:
    whether this is the loss.  without: a module in which nothing is tried, because that was done
    before; "" is none.
    """

    root: str = ""
    mode: str = "train"
    is_loss: bool = False
    without: str = ""


@dataclass(frozen=True)
class Context:
    """What a hypothesis may know of the surroundings of a place.

    sites: all functions of the unit in order; the rest as in `Surroundings`.
    """

    sites: tuple[FunctionSite, ...]
    root: str = ""
    mode: str = "train"
    is_loss: bool = False
    without: str = ""

    def producer(self, operand: Any) -> FunctionSite | None:
        """The site whose result an operand is; of a module's call, that call."""
        if not isinstance(operand, Operand) or not operand.source.startswith("event."):
            return None
        return self.sites[int(operand.source.split(".")[1])]

    def consumers(self, site: FunctionSite) -> Iterator[FunctionSite]:
        """The sites that use a site's result directly; the end of a module passes it on."""
        prefix = f"event.{site.event}."
        for later in self.sites[site.event + 1 :]:
            if any(o.source.startswith(prefix) for o in operands(later)):
                yield later

    def leads_to(self, site: FunctionSite, functions: Iterable[str], most: int = 6) -> bool:
        """Whether a site's result reaches one of these functions within a few steps."""
        wanted = set(functions)
        seen, front = {site.event}, [site]
        for _ in range(most):
            front = [c for s in front for c in self.consumers(s) if c.event not in seen]
            seen.update(s.event for s in front)
            if any(s.place.function in wanted for s in front):
                return True
        return False

    def comes_from(self, site: FunctionSite, functions: Iterable[str], most: int = 6) -> bool:
        """Whether one of these functions led to a site's operands within a few steps."""
        wanted = set(functions)
        front, seen = [site], {site.event}
        for _ in range(most):
            front = [
                p
                for s in front
                for o in operands(s)
                for p in [self.producer(o)]
                if p is not None and p.event not in seen
            ]
            seen.update(s.event for s in front)
            if any(s.place.function in wanted or s.kind in wanted for s in front):
                return True
        return False


def operands(site: FunctionSite) -> list[Operand]:
    """All tensors that a site gets, in the order of its arguments."""
    found: list[Operand] = []

    def collect(value: Any) -> None:
        if isinstance(value, Operand):
            found.append(value)
        elif isinstance(value, tuple):
            for part in value:
                collect(part)

    for value in site.arguments.values():
        collect(value)
    return found


#: What a hypothesis says of the port's mending: arguments of the function by torch's names, as
#: the reference has them; the function itself is computed anew in the port where that fits.
Propose = Callable[[FunctionSite, Context], Iterable[Values]]
Change = Callable[[Any, Values], Any]


@dataclass(frozen=True)
class FunctionHypothesis(Hypothesis):
    """One way in which the port's call of a function may differ.

    functions: names of functions, or "module".
    propose: values with which it is worth trying at a site (none: it does not apply there).
    change: what the function yields under it.
    text: the cause in words, with {reference} and {port}.
    argument: torch's argument that it changes, if it is just that; with `fix_for` of the port's
    adapter this mends a library module.
    backward: it changes gradients only.  statistics: it changes running statistics only.
    quiet: its change may be so small that it hides in the noise of coarse arithmetic (every
    estimated number may), so it is looked for there too.
    within: where its place is a module, the module's own code holds it, not that of its caller.
    special_of: ids of which this is a special case; they are not listed beside it.
    reference_value, port_value: what the cause reports, from site and values.
    """

    functions: tuple[str, ...]
    propose: Propose
    change: Change
    text: str
    argument: str | None = None
    backward: bool = False
    statistics: bool = False
    quiet: bool = False
    within: bool = False
    special_of: tuple[str, ...] = ()
    reference_value: Callable[[FunctionSite, Context], Any] | None = None
    port_value: Callable[[Values], Any] | None = None
    examples: tuple[Example, ...] = ()

    @property
    def number(self) -> Number | None:
        """The number that it estimates; no change of a function has more than one."""
        return self.numbers[0] if self.numbers else None

    def reported_reference(self, site: FunctionSite, context: Context) -> Any:
        """The reference's value as the cause reports it."""
        if self.reference_value is not None:
            return self.reference_value(site, context)
        if self.argument is not None:
            return site.arguments.get(self.argument)
        return None

    def reported_port(self, values: Values) -> Any:
        """The port's value as the cause reports it."""
        if self.port_value is not None:
            return self.port_value(values)
        if self.number is not None:
            return values.get(self.number.name)
        if self.argument is not None:
            return values.get(self.argument)
        return None


def other_argument(
    name: str,
    id: str,
    functions: tuple[str, ...],
    argument: str,
    candidates: Callable[[Any, FunctionSite], Iterable[Any]],
    text: str,
    *,
    examples: tuple[Example, ...] = (),
    rank: int = 5,
    default: Any = None,
    statistics: bool = False,
    quiet: bool = False,
) -> FunctionHypothesis:
    """A hypothesis that a function has another value of one of its arguments.

    candidates: the values to try, from the reference's value and the site.
    """

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        own = site.arguments.get(argument, default)
        for value in candidates(own, site):
            if value != own:
                yield {argument: value}

    def change(call: Call, values: Values) -> Any:
        return call.run(**{argument: values[argument]})

    return FunctionHypothesis(
        name,
        id,
        functions,
        propose,
        change,
        text,
        argument,
        rank=rank,
        statistics=statistics,
        quiet=quiet,
        examples=examples,
    )


def other_number(
    name: str,
    id: str,
    functions: tuple[str, ...],
    argument: str,
    number: Number,
    text: str,
    *,
    examples: tuple[Example, ...] = (),
    rank: int = 4,
    statistics: bool = False,
    applies: Callable[[FunctionSite, Context], bool] = lambda site, context: True,
) -> FunctionHypothesis:
    """A hypothesis that a function has another number for one of its arguments, to be estimated."""

    def propose(site: FunctionSite, context: Context) -> Iterator[Values]:
        if applies(site, context):
            yield {}

    def change(call: Call, values: Values) -> Any:
        return call.run(**{argument: values[number.name]})

    return FunctionHypothesis(
        name,
        id,
        functions,
        propose,
        change,
        text,
        argument,
        numbers=(number,),
        rank=rank,
        statistics=statistics,
        examples=examples,
    )

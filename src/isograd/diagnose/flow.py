"""How tensors flow between the functions of a unit: what hypotheses ask to know where they stand.

A module that is given (its result is not computed) counts as the function of its kind, so that a
softmax is found whether it is called as a function, or stands as a module whose result is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isograd.diagnose.hypothesis import Context, operands
from isograd.frameworks.base import FunctionSite, Operand, Place

#: Functions that arrange elements anew, or hand them on.
ARRANGING = frozenset(
    """view reshape transpose permute flatten unflatten unsqueeze squeeze getitem expand to float
    half double bfloat16 type_as clone dropout identity movedim select narrow contiguous repeat
    repeat_interleave detach chunk split unbind expand_as view_as reshape_as""".split()
)
#: Functions that attention scores pass through on their way to the softmax.
SCORING = ARRANGING | frozenset(
    "mul div add sub masked_fill where clamp tanh maximum minimum nan_to_num".split()
)
#: Functions by which an element stays where it is.
ELEMENTWISE = frozenset("mul div add sub neg clamp abs pow sqrt exp tanh sigmoid relu".split())
PRODUCTS = frozenset("matmul bmm baddbmm einsum".split())

Stop = Callable[[FunctionSite], bool]


def name_of(site: FunctionSite) -> str:
    """The function's name; of a module, its kind as a function would be named."""
    if site.place.function != "module":
        return site.place.function
    known = {"Softmax": "softmax", "Dropout": "dropout", "Identity": "identity"}
    return known.get(site.kind, f"module {site.kind}")


class Flow:
    """The sites of a unit with what leads from one to another."""

    def __init__(self, context: Context) -> None:
        self.sites = context.sites
        self.uses: dict[int, list[FunctionSite]] = {}
        self._calls: dict[Place, list[FunctionSite]] = {}
        #: Site → the module whose end hands its result on.
        self.ends: dict[int, FunctionSite] = {}
        #: Functions of the user's code, the rounds of a loop counted once.
        self.instructions = len({(s.place.module, s.place.function, s.origin) for s in self.sites})
        for site in self.sites:
            self._calls.setdefault(site.place, []).append(site)
            for event in {_event(o) for o in operands(site)} - {None}:
                assert event is not None
                self.uses.setdefault(event, []).append(site)
            before = self.sites[site.event - 1] if site.event else None
            if site.place.function == "module" and before is not None and _hands_on(before, site):
                self.ends[before.event] = site
        self._begins = {end.event: event for event, end in self.ends.items()}

    def calls_at(self, place: Place) -> list[FunctionSite]:
        """All calls at a place, in order."""
        return self._calls.get(place, [])

    def after(self, site: FunctionSite) -> list[FunctionSite]:
        """The sites that use a site's result; a module that ends with it represents its users."""
        found = [s for s in self.uses.get(site.event, ()) if not self.is_computed(s)]
        end = self.ends.get(site.event)
        return [*found, *(self.after(end) if end is not None else ())]

    def is_computed(self, site: FunctionSite) -> bool:
        """Whether a site is a module whose functions are sites of their own."""
        if site.place.function != "module" or not site.event:
            return False
        before = self.sites[site.event - 1].place.module
        own = site.place.module
        return before == own or before.startswith(f"{own}.") or (not own and bool(before))

    def maker(self, operand: Any) -> FunctionSite | None:
        """The function that computed an operand; a module that is given, where it was given."""
        event = _event(operand)
        while event is not None and event in self._begins:
            event = self._begins[event]
        return None if event is None else self.sites[event]

    def ahead(self, site: FunctionSite, stop: Stop, through: frozenset[str]) -> FunctionSite | None:
        """The first site that stops the search on the way of a site's result through functions."""
        seen: set[int] = set()
        front = [site]
        while front:
            following: list[FunctionSite] = []
            for one in front:
                for user in self.after(one):
                    if user.event in seen:
                        continue
                    seen.add(user.event)
                    if stop(user):
                        return user
                    if name_of(user) in through:
                        following.append(user)
            front = following
        return None

    def behind(self, operand: Any, through: frozenset[str]) -> Iterator[FunctionSite]:
        """What led to an operand, nearest first: searched on through functions."""
        seen: set[int] = set()
        front = [operand]
        while front:
            following: list[Any] = []
            for one in front:
                maker = self.maker(one)
                if maker is None or maker.event in seen:
                    continue
                seen.add(maker.event)
                yield maker
                if name_of(maker) in through:
                    following += operands(maker)
            front = following

    def sources(self, operand: Any, through: frozenset[str]) -> set[str]:
        """Where an operand comes from in the end, searched through functions."""
        found: set[str] = set()
        seen: set[str] = set()
        front = [operand]
        while front:
            following: list[Any] = []
            for one in front:
                if not isinstance(one, Operand) or one.source in seen:
                    continue
                seen.add(one.source)
                maker = self.maker(one)
                if maker is not None and name_of(maker) in through:
                    following += operands(maker)
                else:
                    found.add(one.source)
            front = following
        return found


_latest: list[tuple[Context, Flow]] = []


def flow_of(context: Context) -> Flow:
    """The flow of a context; the latest one is kept, as every hypothesis asks for it."""
    if not _latest or _latest[0][0] is not context:
        _latest[:] = [(context, Flow(context))]
    return _latest[0][1]


def _event(operand: Any) -> int | None:
    if isinstance(operand, Operand) and operand.source.startswith("event."):
        return int(operand.source.split(".")[1])
    return None


def _hands_on(before: FunctionSite, end: FunctionSite) -> bool:
    inside = before.place.module
    own = end.place.module
    within = inside == own or inside.startswith(f"{own}.") or (not own and bool(inside))
    shapes = [o.shape for o in before.outputs]
    return within and bool(shapes) and shapes == [o.shape for o in end.outputs][: len(shapes)]

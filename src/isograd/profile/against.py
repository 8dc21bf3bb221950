"""Two runs side by side: steps, modules that are one, operators of one side only.

A difference counts only beyond the noise of both measurements, which the steps give: twice the
standard error of the difference of two medians.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from isograd.errors import ProfileError
from isograd.pairing import pair_modules, pair_parameters
from isograd.profile.analyse.analysis import Analysis
from isograd.profile.model import ModuleTime, Phase

#: Modules whose times differ by less are the same within what hooks measure.
LEAST_RATIO = 1.2


@dataclass(frozen=True)
class ModuleSide:
    """A module of the first run beside its partner: seconds per step of a pass and its gradient."""

    name: str
    kind: str
    forward_s: float
    backward_s: float
    other_name: str | None = None
    other_s: float = float("nan")

    @property
    def seconds(self) -> float:
        """Forward and backward together, what is known of it."""
        return float(np.nansum([self.forward_s, self.backward_s]))

    @property
    def ratio(self) -> float:
        """This run's time over the other's, NaN without a partner."""
        return self.seconds / self.other_s if self.other_s > 0 else float("nan")


@dataclass(frozen=True)
class Against:
    """faster: whether the first run is faster, None where the difference lies within the noise.

    only_here, only_there: operators by name with seconds per step; of one framework only.
    """

    other: Analysis
    ratio: float
    difference_s: float
    noise_s: float
    faster: bool | None
    phases: tuple[tuple[Phase, float, float], ...]
    modules: tuple[ModuleSide, ...]
    unpaired: tuple[str, ...]
    only_here: tuple[tuple[str, float], ...]
    only_there: tuple[tuple[str, float], ...]
    notes: tuple[str, ...]


def compare(here: Analysis, there: Analysis) -> Against:
    """Compare two runs; raise ProfileError where one of them has no steps."""
    for side in (here, there):
        if not side.step_s > 0:
            raise ProfileError(
                f"{side.profile.source} has no steps, so it cannot be compared",
                "Record both runs with isograd.profile, or with marks of steps.",
            )
    difference = here.step_s - there.step_s
    noise = 2.0 * float(np.hypot(_noise(here), _noise(there)))
    modules, unpaired, notes = _modules(here, there)
    if here.profile.device != there.profile.device:
        notes.append(
            f"The runs ran on {here.profile.device} and {there.profile.device}: their times tell "
            "of the devices, too."
        )
    is_same = here.profile.framework == there.profile.framework
    own, other = _by_name(here), _by_name(there)
    if is_same and own and other and not own.keys() & other.keys():
        notes.append(
            "The runs share no operator: they are of different trainings, so their steps cannot be "
            "compared. Give two runs of one training."
        )
    return Against(
        other=there,
        ratio=here.step_s / there.step_s,
        difference_s=difference,
        noise_s=noise,
        faster=None if abs(difference) <= noise else difference < 0,
        phases=_phases(here, there),
        modules=modules,
        unpaired=unpaired,
        only_here=_only(own, other) if is_same else (),
        only_there=_only(other, own) if is_same else (),
        notes=tuple(notes),
    )


def _noise(side: Analysis) -> float:
    """Standard error of the median; with fewer than five steps, the whole step."""
    return side.noise_s if len(side.breakdown.step_s) >= 5 else side.step_s


def _phases(here: Analysis, there: Analysis) -> tuple[tuple[Phase, float, float], ...]:
    found = []
    for phase in Phase:
        pair = [_median(side.steps.phase(phase)) for side in (here, there)]
        if any(value == value and value > 0 for value in pair):
            found.append((phase, pair[0], pair[1]))
    return tuple(found)


def _median(values: np.ndarray) -> float:  # type: ignore[type-arg]  # of float64
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else float("nan")


def _by_name(side: Analysis) -> dict[str, float]:
    times: defaultdict[str, float] = defaultdict(float)
    for operator in side.operators:
        times[operator.name] += operator.self_s
    return times


def _only(own: dict[str, float], other: dict[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(
        sorted(((n, s) for n, s in own.items() if n not in other), key=lambda pair: -pair[1])
    )


def _modules(
    here: Analysis, there: Analysis
) -> tuple[tuple[ModuleSide, ...], tuple[str, ...], list[str]]:
    """Modules of the first run, the one that loses most first; unpaired names; notes."""
    names, notes = _pairs(here, there)
    others = {module.name: module for module in there.profile.modules}
    sides = []
    for module in here.profile.modules:
        partner = others.get(names.get(module.name, ""))
        if module.name in names and partner is not None:
            sides.append(_side(module, partner.name, _total(partner)))
        else:
            sides.append(_side(module, None, float("nan")))
    sides.sort(key=lambda side: -(side.seconds - side.other_s) if side.ratio == side.ratio else 0.0)
    unpaired = tuple(side.name for side in sides if side.other_name is None)
    if not notes and sides and len(unpaired) == len(sides):
        notes.append(
            "The runs share no module: their networks differ, so the times of their steps say "
            "nothing of a port. Give two runs of one network."
        )
    return tuple(sides), unpaired, notes


def _side(module: ModuleTime, other: str | None, seconds: float) -> ModuleSide:
    return ModuleSide(module.name, module.kind, module.forward_s, module.backward_s, other, seconds)


def _total(module: ModuleTime) -> float:
    return float(np.nansum([module.forward_s, module.backward_s]))


def _pairs(here: Analysis, there: Analysis) -> tuple[dict[str, str], list[str]]:
    """Which module of the first run is which of the second: as verify pairs them."""
    first, second = here.profile.structure, there.profile.structure
    if first is None or second is None:
        return {}, ["One of the runs has no list of modules, so modules are not compared."]
    if second.framework == "mindspore" or first.framework == second.framework:
        # verify's reference is torch's network; equal frameworks pair in either order.
        pairing = pair_modules(first, second, pair_parameters(first, second))
        return {pair.reference: pair.port for pair in pairing.pairs}, []
    pairing = pair_modules(second, first, pair_parameters(second, first))
    return {pair.port: pair.reference for pair in pairing.pairs}, []

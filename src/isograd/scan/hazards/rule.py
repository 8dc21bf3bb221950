"""A hazard as data: what it is, why, the way out, and the examples that are its tests."""

from __future__ import annotations

from dataclasses import dataclass

ASCEND = "Ascend"


@dataclass(frozen=True)
class Rule:
    """One kind of hazard.

    message: why, with `{api}` for the API at hand.  advice: the way out.
    apis: names of torch whose mere use is the hazard; a name that ends in `.` means all below
    it.  Other hazards have a detector in `detectors`.
    once: one finding per API and file, with the number of uses, where each use has the same answer.
    bad, good: code with and without the hazard; every rule is tested by them.
    """

    code: str
    message: str
    advice: str
    bad: tuple[str, ...]
    good: tuple[str, ...]
    apis: tuple[str, ...] = ()
    device: str = ""
    once: bool = False
    source: str = ""

"""A layer of the port that computes in sixteen bits, where no hypothesis can follow its rounding.

A kernel rounds at places of its own inside (MindSpore's GELU and layer norm in float16 do), so the
matched filter of `precision.cast` cannot foretell its result.  Then what the port itself shows is
the evidence: functions that yield sixteen bits where the reference has none, an error of the size
of their rounding, and, as proof, a replay without these casts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from isograd.frameworks.base import FunctionCall, PortFix
from isograd.model import Cause, Evidence
from isograd.verify.proof import is_narrowing, without_event

#: Rounding of half a unit in the last place, relative.
_ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
#: A layer's result may be this many times better or worse than one rounding: sums average it out,
#: differences of close numbers magnify it.
_REACH = 64.0


@dataclass(frozen=True)
class HalfCause:
    """The cause, and the fixes under which the port agrees (none: not proved)."""

    cause: Cause
    fixes: tuple[PortFix, ...]


def half_cause(
    reference: Sequence[FunctionCall],
    port: Sequence[FunctionCall],
    errors: Sequence[Evidence],
    agrees: Callable[[tuple[PortFix, ...]], bool],
) -> HalfCause | None:
    """The cause where the port computes in sixteen bits and errs by as much; else None.

    reference, port: the functions of one unit.  errors: of the tensors that differ.
    agrees: whether the port agrees with the reference under fixes.
    """
    narrow = [event for event in port if event.value.dtype in _ROUNDING]
    if not narrow or any(event.value.dtype in _ROUNDING for event in reference):
        return None
    dtype = narrow[0].value.dtype
    rounding = _ROUNDING[dtype]
    if not all(rounding / _REACH <= e.error <= rounding * _REACH for e in errors):
        return None
    computing = [event for event in narrow if not is_narrowing(event)]
    what = (computing or narrow)[0].function.strip("_")
    fixes = tuple(without_event(number) for number, event in enumerate(port) if is_narrowing(event))
    proved = bool(fixes) and agrees(fixes)
    text = f"{what} computed in {dtype}" if computing else f"a tensor cast to {dtype} and back"
    cause = Cause("precision.cast", "float32", dtype, proved=proved, text=text)
    return HalfCause(cause, fixes if proved else ())

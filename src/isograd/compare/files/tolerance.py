"""What two values of a dtype may differ by where nobody says it.

An element may differ by relative × |reference| + scaled × (root mean square of the reference).
A fixed absolute allowance would pass 1e-6·x against -1e-6·x; this one moves with the tensor.
Between two implementations of one layer in float32 we measured relative errors of 1e-7 to 1e-6
(docs/thresholds.md); torch.testing allows 1.3e-6 with 1e-5 absolute.  Narrower floats are allowed
two of their own steps.  Integers and booleans are allowed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """relative and scaled count against |reference| and its root mean square; absolute is fixed."""

    relative: float = 0.0
    scaled: float = 0.0
    absolute: float = 0.0


#: dtype -> relative step that is allowed, and the smallest number that hardware keeps apart from 0.
_FLOATS = {
    "float8_e5m2": (0.25, 2.0**-16),
    "float8_e4m3fn": (0.125, 2.0**-9),
    "float8_e4m3": (0.125, 2.0**-9),
    "bfloat16": (1.6e-2, 1.2e-38),
    "float16": (2e-3, 2.0**-24),
    "float32": (1e-5, 1.2e-38),
    "complex64": (1e-5, 1.2e-38),
    "float64": (1e-7, 2.3e-308),
    "complex128": (1e-7, 2.3e-308),
}


def tolerance_for(reference: str, other: str) -> Tolerance:
    """The tolerance of the coarser of two dtypes; nothing where neither is a float."""
    known = [_FLOATS[dtype] for dtype in (reference, other) if dtype in _FLOATS]
    if not known:
        is_float = any(dtype.startswith(("float", "complex")) for dtype in (reference, other))
        known = [_FLOATS["float64"]] if is_float else []
    if not known:
        return Tolerance()
    relative, smallest = max(known)
    return Tolerance(relative, relative, smallest)

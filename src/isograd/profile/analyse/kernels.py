"""Kernels of a device by the operator that launched them: `aten::mm` and not `sm80_xmma_gemm_…`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isograd.profile.analyse.kinds import MOVES, ON_HOST, kind_of
from isograd.profile.analyse.nesting import parents
from isograd.profile.analyse.operators import operator_rows
from isograd.profile.spans import NONE, Codes, Spans

#: Categories of copies and fills by the device itself, whose names say what they are.
_OWN_NAMES = ("gpu_memcpy", "gpu_memset")
#: Calls of the driver within calls of the runtime.
_DEEPEST_LAUNCH = 3


def with_launchers(spans: Spans) -> Spans:
    """Kernels with name, shapes and dtypes of the operator that launched them, where it is known.

    A copy within a conversion is the conversion's. A compiled region launches kernels of many
    operators, which keep their names; so do copies between host and device.
    """
    if spans.launches is None:
        return spans
    owner = _owners(spans)
    if owner is None:
        return spans
    kernel = np.flatnonzero(owner != NONE)
    by = owner[kernel]
    is_named = np.asarray([_is_operator(text) for text in spans.texts], dtype=bool)
    is_named = is_named[spans.name[by]]
    is_named &= ~np.isin(spans.category[kernel], spans.numbers_of(_OWN_NAMES))
    kernel, by = kernel[is_named], by[is_named]
    found = {}
    for column in ("name", "shapes", "dtypes"):
        values = getattr(spans, column).copy()
        values[kernel] = values[by]
        found[column] = values
    return replace(spans, owner=owner, **found)


def _is_operator(name: str) -> bool:
    """Whether a name is an operator's of torch: `namespace::name`, and its kernels are its work."""
    return "::" in name and not name.startswith("autograd::") and kind_of(name) not in ON_HOST


def _owners(spans: Spans) -> Codes | None:
    """The operator row that launched each kernel, -1 for all else; None where none is known."""
    assert spans.launches is not None
    is_known = spans.launches.call != NONE
    kernel, call = spans.launches.kernel[is_known], spans.launches.call[is_known]
    operators = operator_rows(spans)
    rows = np.union1d(operators, call)
    inner = parents(spans.track[rows], spans.start_ns[rows], spans.duration_ns[rows])
    above = np.full(len(spans), NONE, dtype=np.int64)
    above[rows] = np.where(inner >= 0, rows[inner], NONE)
    is_operator = np.zeros(len(spans), dtype=bool)
    is_operator[operators] = True
    is_operator[call] = False
    owner = above[call]
    for _ in range(_DEEPEST_LAUNCH):
        owner = np.where((owner != NONE) & ~is_operator[owner], above[owner], owner)
    is_move = np.asarray([kind_of(text) in MOVES for text in spans.texts], dtype=bool)
    is_move = is_move[spans.name]
    moving = (owner != NONE) & is_move[owner]
    outer = np.where(moving, above[owner], NONE)
    for _ in range(3):  # aten::contiguous calls aten::clone calls aten::copy_
        is_outer = (outer != NONE) & is_move[outer]
        owner = np.where(is_outer, outer, owner)
        outer = np.where(is_outer, above[outer], NONE)
    if not (owner != NONE).any():
        return None
    found = np.full(len(spans), NONE, dtype=np.int32)
    found[kernel] = owner
    return found

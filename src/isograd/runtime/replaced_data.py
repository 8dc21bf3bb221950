"""`p.data = values` of Parameters that compiled steps hold."""

from __future__ import annotations

import weakref
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253
from mindspore.common import api  # noqa: TID253

from isograd.runtime.writing import set_data

_READS = "_data_that_was_read"


def data_read(owner: Any) -> Any:
    """`owner.data` that is kept: it follows a Parameter until this gets other data."""
    if not isinstance(owner, ms.Tensor):
        return owner.data
    found = ops.stop_gradient(owner)
    if isinstance(owner, ms.Parameter):
        reads = getattr(owner, _READS, [])
        setattr(owner, _READS, [*(one for one in reads if one() is not None), weakref.ref(found)])
    return found


def replace_data(owner: Any, values: Any) -> Any:
    """`owner.data = values`; the owner.

    MindSpore's `set_data` gives a Parameter other memory, where a compiled graph never looks
    (2.10).  So the values go into the memory that it has, and what `data_read` has read of it
    before gets memory of its own.
    """
    if not isinstance(owner, ms.Parameter):  # which alone a static graph looks at
        return set_data(owner, values)
    return _replaced(owner, values)


def _replaced(owner: Any, values: Any) -> Any:
    made = values if isinstance(values, ms.Tensor) else ms.Tensor(values)
    if (made.dtype, made.shape) != (owner.dtype, owner.shape):
        return set_data(owner, values)
    with api._no_grad():
        made = made.copy()
        before = [found for one in getattr(owner, _READS, []) if (found := one()) is not None]
        if before:
            kept = owner.value().copy()
            for found in before:
                found.assign_value(kept)
        setattr(owner, _READS, [])
        ops.assign(owner, made)
    return owner

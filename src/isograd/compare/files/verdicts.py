"""What is said of one pair of tensors."""

from __future__ import annotations

from enum import Enum


class TensorVerdict(str, Enum):
    """The answer for one pair, or for one tensor that has no partner."""

    IDENTICAL = "identical"
    CLOSE = "close"
    DIFFERS = "differs"
    SHAPE = "shape"
    FAILED = "failed"
    MISSING = "missing"


#: Verdicts after which two sets are not the same.
DIVERGENT = frozenset({TensorVerdict.DIFFERS, TensorVerdict.SHAPE})
#: Verdicts that leave something open.
OPEN = frozenset({TensorVerdict.FAILED, TensorVerdict.MISSING})

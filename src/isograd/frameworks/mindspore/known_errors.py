"""Errors of MindSpore whose words do not say what to do: `advice_for`.

Each was seen on MindSpore 2.10.0 on a CPU; tests/frameworks/test_mindspore_known_errors.py raises
it and runs the way out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class KnownError:
    """pattern: what MindSpore says, searched; advice: what to do, with the groups' words in it."""

    pattern: str
    advice: str


KNOWN = (
    KnownError(
        r"StridedSliceGrad, \d+ input memory out of bounds",
        "MindSpore has no gradient of a slice with a step between other axes, x[:, ::2], on a CPU. "
        "Write x.reshape(n, size // 2, 2, …)[:, :, 0] or x.index_select(1, index), or run the port "
        'on its accelerator: [port] device = "Ascend".',
    ),
    KnownError(
        r"For 'MatMulExt' op, shape1\[-1\] must be equal to shape2\[-2\]",
        "MindSpore has no gradient of a matrix product whose summed axis has one element where the "
        "second matrix has no batch. Write the product of the tensors themselves, x * y, which is "
        "the same there, or ops.bmm.",
    ),
    KnownError(
        r"The kernel (\w+) unregistered",
        "MindSpore has no kernel of {0} on this device. Compose it of other operators, as "
        'isograd convert does, or run the port on its accelerator: [port] device = "Ascend".',
    ),
)


def advice_for(said: str) -> str:
    """What to do about an error of MindSpore; empty where nothing more is known than it says."""
    for known in KNOWN:
        found = re.search(known.pattern, said)
        if found:
            return known.advice.format(*found.groups())
    return ""

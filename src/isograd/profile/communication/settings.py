"""Segments as the settings of MindSpore and torch, ready to paste."""

from __future__ import annotations

import numpy as np

from isograd.profile.communication.segments import Floats, Segments

_MIB = 1 << 20


def mindspore_settings(segments: Segments) -> str:
    """`all_reduce_fusion_config` and `comm_fusion`: the last gradient of each segment.

    MindSpore counts from 0, in the order in which its graph sends gradients; the indices rise and
    the last one is the last gradient (facts of MindSpore 2.10: [3, 7] makes two of eight).
    """
    indices = list(segments.indices)
    return (
        f"mindspore.set_auto_parallel_context(all_reduce_fusion_config={indices})\n"
        "# or, for AutoParallel:\n"
        f"AutoParallel(net).comm_fusion({{'allreduce': {{'mode': 'index', 'config': {indices}}}}})"
    )


def torch_settings(segments: Segments, size_bytes: Floats) -> str:
    """`bucket_cap_mb_list` cuts exactly there; `bucket_cap_mb` is the one size that is nearest.

    size_bytes: shape (L,), float64.
    """
    total = np.concatenate([[0.0], np.cumsum(size_bytes)])
    begins = [0, *segments.ends[:-1]]
    sizes = [total[e] - total[b] for b, e in zip(begins, segments.ends, strict=True)]
    caps = [round(float(size) / _MIB, 3) for size in sizes]
    largest = max(caps) if caps else 0.0
    return (
        f"DistributedDataParallel(model, bucket_cap_mb={largest:g})\n"
        f"# exactly these segments: bucket_cap_mb_list={caps}"
    )

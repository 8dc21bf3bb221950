"""Buckets of DistributedDataParallel: when each is ready, how long its AllReduce takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isograd.profile.model import Collectives, no_collectives


class BucketClock:
    """A communication hook that does what DDP does without one, and takes times.

    A model that has a hook of its own, or is no DDP, is left alone.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._rows: list[tuple[int, str, int, int, int]] = []
        self._lock = threading.Lock()
        self._step = 0
        self._rank = 0

    def attach(self, window: Callable[[], str], notes: list[str]) -> None:
        """Register the hook on a DistributedDataParallel; a hook cannot be taken away again."""
        import torch

        if not torch.distributed.is_available():
            return
        from torch.nn.parallel import DistributedDataParallel

        model = self._model
        if not isinstance(model, DistributedDataParallel):
            return
        self._rank = torch.distributed.get_rank()
        try:
            model.register_comm_hook(None, self._hook(model, window))
        except RuntimeError as error:
            notes.append(f"DDP's buckets are not timed: it has a hook of its own ({error}).")

    def _hook(self, model: Any, window: Callable[[], str]) -> Any:
        import torch
        from torch import distributed

        count = model.process_group.size()

        def hook(state: object, bucket: Any) -> Any:
            ready = time.time_ns()
            is_watched = window() in ("plain", "profiled")
            name = f"bucket {bucket.index()}"
            buffer = bucket.buffer()
            size = buffer.numel() * buffer.element_size()
            if bucket.is_last():
                self._step += 1
            step = self._step - 1 if bucket.is_last() else self._step
            buffer.div_(count)
            work = distributed.all_reduce(buffer, group=model.process_group, async_op=True)

            def done(future: Any) -> Any:
                if is_watched:
                    with self._lock:
                        self._rows.append((step, name, ready, time.time_ns(), size))
                return future.value()[0]

            return work.get_future().then(done)

        # DDP reads the annotations of a hook and wants its own types there.
        hook.__annotations__ = {
            "bucket": distributed.GradBucket,  # type: ignore[attr-defined]  # public, not listed
            "return": torch.futures.Future[torch.Tensor],
        }
        return hook

    def collectives(self) -> Collectives:
        """Times of all buckets of the watched steps.

        A message starts when its bucket is ready and the message before has ended: gloo and NCCL
        send in order.
        """
        if not self._rows:
            return no_collectives()
        rows = sorted(self._rows, key=lambda row: (row[0], row[2]))
        start, before, step = [], 0, -1
        for row in rows:
            before = 0 if row[0] != step else before
            step = row[0]
            start.append(max(row[2], before))
            before = max(before, row[3])
        begin = np.asarray(start, dtype=np.int64)
        end = np.asarray([row[3] for row in rows], dtype=np.int64)
        return Collectives(
            rank=np.full(len(rows), self._rank, dtype=np.int32),
            step=np.asarray([row[0] for row in rows], dtype=np.int64),
            name=tuple(row[1] for row in rows),
            start_ns=begin,
            duration_ns=np.maximum(end - begin, 1),
            size_bytes=np.asarray([row[4] for row in rows], dtype=np.int64),
            ready_ns=np.asarray([row[2] for row in rows], dtype=np.int64),
        )

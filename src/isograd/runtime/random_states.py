"""The state of MindSpore's random numbers, as torch keeps and restores it.

MindSpore's operators draw by a global seed and by a counter for each kernel, which it holds under
private names; `mindspore.get_rng_state` speaks of the generator of mint's functions alone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np

#: `mindspore.common.seed` is a function by its attribute.
_SEEDS: Any = importlib.import_module("mindspore.common.seed")


def initial_seed() -> int:
    """The seed that was set last; one is drawn and set where there was none."""
    return seed() if ms.get_seed() is None else int(ms.get_seed())


def seed() -> int:
    """Set a seed that nobody chose; it has 32 bits, as MindSpore takes them."""
    drawn = secrets.randbits(32)
    ms.set_seed(drawn)
    return drawn


def get_rng_state() -> Any:
    """The state as a tensor of bytes, which may lie in a checkpoint."""
    state = {
        "seed": initial_seed(),
        "kernels": [[*key, count] for key, count in _SEEDS._KERNEL_SEED.items()],
        "generator": ms.get_rng_state().asnumpy().tolist(),
    }
    return ms.Tensor(np.frombuffer(json.dumps(state).encode(), np.uint8).copy())


def set_rng_state(new_state: Any) -> None:
    """Go on from a state of get_rng_state."""
    state = json.loads(new_state.asnumpy().tobytes())
    _SEEDS._GLOBAL_SEED = state["seed"]
    _SEEDS._KERNEL_SEED.clear()
    for kernel, number, count in state["kernels"]:
        _SEEDS._KERNEL_SEED[kernel, number] = count
    ms.set_rng_state(ms.Tensor(state["generator"], ms.uint8))


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, *_: Any, device_type: Any = None, **__: Any
) -> Iterator[None]:
    """A block behind which the random numbers go on as if it had drawn none."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if state is not None:
            set_rng_state(state)

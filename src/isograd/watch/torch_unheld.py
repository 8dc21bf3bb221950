"""Parameters of a trained torch network that get gradients and that no optimizer holds."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd.watch.observation import Floats
from isograd.watch.torch_lane import Mark, marks_of
from isograd.watch.torch_looks import rows_of

#: What a parameter was at a look: its gradient, its statistics and a sample of its elements.
_Seen = tuple[Mark, list[float], Floats]


class Unheld:
    """Remembers them from one look to the next."""

    def __init__(self) -> None:
        self._before: dict[str, _Seen] = {}
        self._held_elsewhere: set[int] = set()
        self._asked: set[int] = set()

    def unchanged(
        self, roots: Sequence[torch.nn.Module], names: Mapping[int, str], held: set[int]
    ) -> tuple[str, ...]:
        """Names of those that got another gradient since the last look, and are what they were.

        A network of which no optimizer holds anything is not trained: it judges, or it teaches.
        Where most of one's matrices are left out, a head is trained on purpose.
        held: the identities of all parameters that optimizers have stepped with.
        """
        parameters = {
            id(p): p
            for root in roots
            if any(id(p) in held for p in root.parameters())
            for p in root.parameters()
            if p.requires_grad and p.ndim >= 2 and p.grad is not None
        }
        free = {key: p for key, p in parameters.items() if key not in held}
        if free.keys() - self._asked:
            # an optimizer may not have stepped yet: a generator's, while the discriminator learns
            self._asked, self._held_elsewhere = set(free), _held_by_any()
        found = [p for key, p in free.items() if key not in self._held_elsewhere]
        found = [p for p in found if _is_moving(p)]
        if 2 * len(found) > len(parameters):
            found = []
        rows, samples = rows_of(found)
        now: dict[str, _Seen] = {
            names.get(id(p), "parameter"): (marks_of([p])[0], row, sample)
            for p, row, sample in zip(found, rows, samples, strict=True)
        }
        before, self._before = self._before, now
        return tuple(
            name for name, seen in now.items() if name in before and _is_same(before[name], seen)
        )


def _is_moving(parameter: torch.nn.Parameter) -> bool:
    """Whether its gradient is finite and not zero, so that a step would change it."""
    gradient = parameter.grad
    if gradient is None or gradient.is_sparse:
        return False
    largest = float(gradient.abs().max())
    return bool(np.isfinite(largest)) and largest > 0.0


def _is_same(before: _Seen, now: _Seen) -> bool:
    """Whether the gradient is a new one, and the weight the old one to the last bit."""
    is_same = before[1][5:8] == now[1][5:8] and np.array_equal(before[2], now[2])
    return is_same and not before[0].is_untouched()


def _held_by_any() -> set[int]:
    """The identities of the parameters of every optimizer that there is."""
    optimizers = [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)]
    return {
        id(p)
        for optimizer in optimizers
        for group in getattr(optimizer, "param_groups", ())
        for p in group["params"]
    }

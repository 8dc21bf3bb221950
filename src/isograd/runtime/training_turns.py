"""Networks that learn in turn, where a later step computes again what an earlier one has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.training_steps import OTHER


def _parameters(called: Any) -> Iterator[Any]:
    """The Parameters of the networks among several objects, each once."""
    networks = [one for one in called if isinstance(one, nn.Cell)]
    found = {id(part): part for one in networks for _, part in one.parameters_and_names()}
    return iter(found.values())


def require_apart(optimizers: Any, called: Any) -> None:
    """Raise RuntimeError if these optimizers change what is computed again behind their steps."""
    changed = {id(part) for one in optimizers for part in one.parameters}
    if any(id(part) in changed for part in _parameters(called)):
        raise RuntimeError(
            f"a loss goes back through weights that another step has changed since. {OTHER}"
        )


def states_of(called: Any) -> Any:
    """What the networks among several objects hold and do not learn: running statistics, counts."""
    return ms.ParameterTuple([part for part in _parameters(called) if not part.requires_grad])


def copied_states(states: Any) -> list[Any]:
    """The values of these Parameters as they are now."""
    return [(part + 0).astype(part.dtype) for part in states]


def restore_states(states: Any, values: Any) -> int:
    """Give these Parameters earlier values: the network is called once in torch."""
    for number in range(len(states)):
        ops.assign(states[number], values[number])
    return len(states)


def learns_in(optimizer: Any, called: Any) -> bool:
    """Whether an optimizer's parameters may be among those of several objects."""
    learning = {id(part) for part in optimizer.parameters}
    are_cells = all(isinstance(one, nn.Cell) for one in called)
    return not are_cells or any(id(part) in learning for part in _parameters(called))


def pulled_back(pull_back: Any, found: Any, learns_beside: bool) -> Any:
    """The gradients of weights through what was computed before, and of what reads them beside it.

    found: the gradients of what was computed, and, if weights learn beside it, theirs.
    """
    if not learns_beside:
        return pull_back(found)[-1]
    first, second = pull_back(found[0])[-1], found[1]
    return [first[number] + second[number] for number in range(len(first))]

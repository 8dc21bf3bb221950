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


def added_gradients(first: Any, second: Any) -> list[Any]:
    """Sum two lists of gradients: those through what was computed before, and those of the rest."""
    return [first[number] + second[number] for number in range(len(first))]

"""What torch modules keep between calls in plain attributes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from isograd import tree
from isograd.frameworks.kept_state import KeptState

#: What torch itself keeps in a module.
_INTERNAL = frozenset(vars(nn.Module()))


def kept_state(model: nn.Module) -> KeptState:
    """What the user's modules keep in plain attributes."""
    own = [m for m in model.modules() if not type(m).__module__.startswith("torch.")]
    return KeptState([vars(m) for m in own], _INTERNAL, _is_plain_tensor, _copied, _overwrite)


def detach_kept(model: nn.Module) -> None:
    """Let no gradient flow from the next step into what this step has left."""
    for module in model.modules():
        for key, value in vars(module).items():
            if key in _INTERNAL:
                continue
            tensors, _ = tree.flatten(value, _is_plain_tensor)
            for tensor in tensors:
                if tensor.grad_fn is not None:
                    tensor.detach_()


def _is_plain_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def _overwrite(tensor: torch.Tensor, values: torch.Tensor) -> None:
    if not torch.equal(tensor, values):
        tensor.copy_(values)

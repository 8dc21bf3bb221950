"""What MindSpore cells keep between calls in plain attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mindspore as ms
from mindspore import nn

from isograd import tree
from isograd.frameworks.kept_state import KeptState

#: What MindSpore itself keeps in a cell; `construct` is replaced while a cell is watched.
_INTERNAL = frozenset(vars(nn.Cell())) | {"construct"}


def kept_state(cells: Iterable[nn.Cell]) -> KeptState:
    """What the user's cells keep in plain attributes."""
    own = [c for c in cells if not type(c).__module__.startswith("mindspore.")]
    return KeptState([vars(c) for c in own], _INTERNAL, _is_plain_tensor, _copied, _overwrite)


def detach_kept(cells: Iterable[nn.Cell]) -> None:
    """Let no gradient flow from the next step into what this step has left.

    MindSpore keeps the graph of a tensor that a differentiated function has stored, and fails where
    another function uses it.
    """
    for cell in cells:
        if type(cell).__module__.startswith("mindspore."):
            continue
        for key, value in list(vars(cell).items()):
            tensors, skeleton = tree.flatten(value, _is_plain_tensor)
            if tensors and key not in _INTERNAL and any(t._has_auto_grad for t in tensors):
                vars(cell)[key] = tree.unflatten(skeleton, [_detached(t) for t in tensors])


def _detached(tensor: Any) -> Any:
    return ms.Tensor(tensor.asnumpy(), tensor.dtype)


def _is_plain_tensor(value: Any) -> bool:
    return isinstance(value, ms.Tensor) and not isinstance(value, ms.Parameter)


def _copied(tensor: Any) -> Any:
    return tensor.copy()


def _overwrite(tensor: Any, values: Any) -> None:
    tensor.copy_(values)

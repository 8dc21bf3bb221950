"""torch's operators with their lines: a dispatch mode that only looks."""

from __future__ import annotations

from typing import Any

from isograd.profile.record.source import OperatorCounter, See


def source_of(model: Any) -> OperatorCounter:
    """Counts the operators of a torch network, those of this thread and of the backward pass."""
    return OperatorCounter(model.named_modules, _make_mode, _tensors, {"always_call": True})


def _make_mode(see: See) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Looking(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no type there
        """Runs each operator unchanged and shows it."""

        def __torch_dispatch__(
            self, function: Any, types: Any, arguments: Any = (), options: Any = None
        ) -> Any:
            result = function(*arguments, **(options or {}))
            see(function._schema.name, arguments, result)
            return result

    return Looking()  # type: ignore[no-untyped-call]


def _tensors(values: Any) -> list[Any]:
    import torch

    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [part for part in value if isinstance(part, torch.Tensor)]
    return found

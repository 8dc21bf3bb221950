"""Eager MindSpore's operators with their lines, by `MsDispatchMode`; compiled code is not seen."""

from __future__ import annotations

from typing import Any

from isograd.profile.record.source import OperatorCounter, See


def source_of(model: Any) -> OperatorCounter:
    """Counts the operators of a MindSpore network that Python issues."""
    return OperatorCounter(model.cells_and_names, _make_mode, _tensors)


def _make_mode(see: See) -> Any:
    import mindspore

    class Looking(mindspore.MsDispatchMode):  # type: ignore[misc]  # MindSpore has no types
        """Runs each operator unchanged and shows it."""

        def __ms_dispatch__(self, function: Any, arguments: Any, options: Any = None) -> Any:
            result = function(*arguments, **(options or {}))
            see(str(function.name), arguments, result)
            return result

    return Looking()


def _tensors(values: Any) -> list[Any]:
    import mindspore

    found: list[Any] = []
    for value in values:
        if isinstance(value, mindspore.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found

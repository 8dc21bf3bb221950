"""Methods of torch's containers that MindSpore's have not."""

from __future__ import annotations

from typing import Any

from mindspore import nn  # noqa: TID253


def pop_child(container: Any, index: Any) -> Any:
    """`layers.pop(index)`: the child, which the container holds no longer."""
    if not isinstance(container, (nn.CellList, nn.SequentialCell)):
        return container.pop(index)
    child = container[index]
    del container[index]
    return child


def insert_child(container: Any, index: int, module: Any) -> Any:
    """`layers.insert(index, module)`; the container."""
    if not isinstance(container, nn.SequentialCell):
        return container.insert(index, module)
    size = len(container)
    later = [pop_child(container, -1) for _ in range(size - (index + size if index < 0 else index))]
    for child in [module, *reversed(later)]:
        container.append(child)
    return container


def extend_children(container: Any, modules: Any) -> Any:
    """`layers.extend(modules)`; the container."""
    if not isinstance(container, nn.SequentialCell):
        return container.extend(modules)
    for child in list(modules):
        container.append(child)
    return container

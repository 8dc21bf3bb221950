"""Classes that make MindSpore's own layers by torch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import nn  # noqa: TID253


class _LayerClass(type(nn.Cell)):  # type: ignore[misc]
    """The instances of MindSpore's layer are instances of the class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])


def layer_class(name: str, native: type, make: Callable[..., Any]) -> type:
    """A class of this name that makes MindSpore's own layer by torch's arguments.

    torch's layers are classes, and some code looks at them: `isinstance(layer, type)`,
    `issubclass(layer, …)`, `layer.__name__`.  A function that makes a layer is no class to it.
    """

    def new(_: type, *args: Any, **kwargs: Any) -> Any:
        return make(*args, **kwargs)

    return _LayerClass(name, (native,), {"__new__": new})

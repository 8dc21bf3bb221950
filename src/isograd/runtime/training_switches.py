"""What of torch's training directs its own machinery, and changes no value in a port."""

from __future__ import annotations

import contextlib
import enum
from typing import Any


def without_effect(*_: Any, **__: Any) -> contextlib.AbstractContextManager[None]:
    """A switch of torch's machinery, for a block or from here on: nothing is to be switched."""
    return contextlib.nullcontext()


def custom_fwd(fwd: Any = None, *, device_type: Any = None, cast_inputs: Any = None) -> Any:
    """The forward method itself, or a decorator: torch's casts inside of autocast alone."""
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, *, device_type: Any = None) -> Any:
    """The backward method itself, or a decorator: torch's restores the mode of autocast."""
    return (lambda function: function) if bwd is None else bwd


class CheckpointPolicy(enum.Enum):
    """What torch's selective checkpoints keep; here everything is kept."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy of torch's selective checkpoints is given; here none is asked."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(*_: Any, **__: Any) -> tuple[Any, Any]:
    """Contexts of the forward pass and of recomputation, which does not happen here."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class DefaultDeviceType:
    """The device whose random state torch's checkpoints keep: a name here."""

    _kind = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Keep a name."""
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        """The name that is kept."""
        return DefaultDeviceType._kind


def factory_kwargs(kwargs: Any) -> dict[str, Any]:
    """The arguments among these that make tensors; TypeError for others and for repeated ones."""
    simple = ("device", "dtype", "memory_format")
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    if unexpected := given.keys() - set(simple):
        raise TypeError(f"unexpected kwargs {unexpected}")
    if repeated := given.keys() & found.keys():
        raise TypeError(f"{repeated} specified twice, in **kwargs and in factory_kwargs")
    return {**found, **{name: given[name] for name in simple if name in given}}


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A layer as it is made; torch's has values that are not set."""
    kwargs.pop("device", None)
    return module_cls(*args, **kwargs)


def type_before_parametrizations(module: Any) -> Any:
    """The class of a module, or that from which parametrizations made its own."""
    return getattr(module, "_derived_from", type(module))


def parallel_apply(
    modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """Each module's result of its own inputs, one after the other."""
    named = kwargs_tup or [{}] * len(modules)
    rows = [given if isinstance(given, (tuple, list)) else (given,) for given in inputs]
    return [
        module(*given, **more) for module, given, more in zip(modules, rows, named, strict=True)
    ]

"""Watches a torch network through forward hooks and tensor hooks.

Gradients are caught by hooks on the tensors and not by full backward hooks: those wrap each
module's tensors in views, which breaks modules that work in place and costs a node per module.  A
tensor's hook sees the whole gradient of the loss with respect to it, from all that use it.

A tensor that several modules see is measured once: it is the same Python object with the same
version counter, which every in-place operation raises.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch  # noqa: TID253  # this module is loaded only for a torch network

from isograd import tree
from isograd.errors import RecordingError
from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.recording.format import Slot
from isograd.recording.observer import Facts, Listener
from isograd.recording.torch_glue import GlueMode
from isograd.tensors import Array

if TYPE_CHECKING:
    from isograd.recording.writer import StepBuilder


class TorchObserver:
    """The `Observer` of torch."""

    silence_advice = (
        "Call the network itself, model(x) and not model.forward(x), inside of `with`; hooks are "
        "not seen in a compiled or exported copy, so record the plain module."
    )

    def __init__(self, model: torch.nn.Module, optimizer: Any) -> None:
        self._model = model
        self._optimizer = optimizer
        self._names = {id(module): name for name, module in model.named_modules()}
        self._handles: list[Any] = []
        self._step_handles: list[Any] = []
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        self._stack: list[tuple[torch.nn.Module, int]] = []
        self._never_called: set[str] = set()
        self._listener: Listener | None = None
        self._glue: GlueMode | None = None

    def module_names(self) -> tuple[str, ...]:
        return tuple(self._names.values())

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def silent(self) -> tuple[str, ...]:
        return tuple(name for name in self._names.values() if name in self._never_called)

    def facts(self) -> Facts:
        changed = ["forward hooks on modules, hooks on tensors and on the parameters' gradients"]
        if self._glue is not None:
            changed.append("a TorchFunctionMode around the operations between modules")
        devices = {str(parameter.device) for parameter in self._model.parameters()} or {"cpu"}
        return Facts(
            framework="torch",
            framework_version=str(torch.__version__),
            device=", ".join(sorted(devices)),
            seeds={"torch": torch.initial_seed()},
            changed=tuple(changed),
        )

    def structure(self) -> Structure:
        modules = tuple(
            ModuleInfo(name, type(module).__name__, is_library(module), module.extra_repr())
            for name, module in self._model.named_modules()
        )
        first: dict[int, str] = {}
        parameters = tuple(
            ParameterInfo(
                name=name,
                module=name.rpartition(".")[0],
                attribute=name.rpartition(".")[2],
                shape=tuple(tensor.shape),
                dtype=_dtype_name(tensor),
                trainable=tensor.requires_grad,
                is_buffer=not isinstance(tensor, torch.nn.Parameter),
                tied_to=_other(first.setdefault(id(tensor), name), name),
            )
            for name, tensor in self._all_state()
        )
        return Structure("torch", modules, parameters)

    def state(self) -> Iterator[tuple[str, torch.Tensor]]:
        return self._all_state()

    def attach(self, listener: Listener, modules: frozenset[str], glue: bool) -> None:
        if isinstance(self._model, torch.jit.ScriptModule):
            raise RecordingError("the network is a ScriptModule", self.silence_advice)
        self._listener = listener
        self._never_called = set(modules)
        keep = self._handles.append
        for name, module in self._model.named_modules():
            if name in modules:
                before = functools.partial(self._before, name)
                keep(module.register_forward_pre_hook(before, with_kwargs=True))
                keep(module.register_forward_hook(self._after, always_call=True))
        for name, parameter in self._model.named_parameters():
            owner = name.rpartition(".")[0]
            if parameter.requires_grad and owner in modules:
                hook = functools.partial(self._parameter_gradient, name)
                keep(_watch(parameter).register_post_accumulate_grad_hook(hook))
        if self._optimizer is not None:
            keep(self._optimizer.register_step_post_hook(self._optimizer_stepped))
        if glue:
            self._glue = GlueMode(self._glue_scope, self._operation)
            self._glue.attach()

    def explain(self, error: BaseException) -> RecordingError | None:
        return None

    def detach(self) -> None:
        if self._glue is not None:
            self._glue.detach()
            self._glue = None
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._forget()
        self._listener = None

    def settle(self, step: StepBuilder) -> None:
        self._forget()

    def add(self, step: StepBuilder, tensor: torch.Tensor) -> int:
        with self._unobserved():
            array, dtype = as_array(tensor)
            if array is None:
                return step.add_missing(_dtype_name(tensor), tuple(tensor.shape), dtype)
            return step.add(array, dtype)

    def _forget(self) -> None:
        for handle in self._step_handles:
            handle.remove()
        self._step_handles.clear()
        self._known.clear()
        self._stack.clear()

    def _all_state(self) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._model.named_parameters(remove_duplicate=False)
        yield from self._model.named_buffers(remove_duplicate=False)

    def _unobserved(self) -> Any:
        return _NOTHING if self._glue is None else self._glue.paused()

    def _before(
        self, name: str, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._never_called.discard(name)
        assert self._listener is not None
        step = self._listener.current if self._stack else self._listener.at_call()
        if step is None:
            return
        with self._unobserved():
            parent = self._stack[-1][1] if self._stack else None
            inputs = self._slots(step, (args, kwargs))
            self._stack.append((module, step.begin_call("module", name, parent, inputs)))

    def _after(self, module: torch.nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not any(entry is module for entry, _ in self._stack):
            return
        while (top := self._stack.pop())[0] is not module:
            pass
        assert self._listener is not None
        step = self._listener.current
        if step is not None:
            with self._unobserved():
                step.end_call(top[1], self._slots(step, output))

    def _slots(self, step: StepBuilder, nested: Any) -> tuple[Slot, ...]:
        if isinstance(nested, torch.Tensor):
            return (Slot("", self._value(step, nested)),)
        tensors, skeleton = tree.flatten(nested, self._is_activation)
        if not tensors:
            return ()
        names = tree.slot_names(skeleton)
        return tuple(
            Slot(name, self._value(step, tensor))
            for name, tensor in zip(names, tensors, strict=True)
        )

    @staticmethod
    def _is_activation(value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def _value(self, step: StepBuilder, tensor: torch.Tensor) -> int:
        known = self._known.get(id(tensor))
        version = -1 if tensor.is_inference() else tensor._version
        if known is not None and known[0]() is tensor and known[1] == version >= 0:
            return known[2]
        number = self.add(step, tensor)
        self._known[id(tensor)] = (weakref.ref(tensor), version, number)
        if tensor.requires_grad and not isinstance(tensor, torch.nn.Parameter):
            hook = functools.partial(self._gradient, step, number)
            self._step_handles.append(_watch(tensor).register_hook(hook))
        return number

    def _gradient(self, step: StepBuilder, number: int, gradient: torch.Tensor) -> None:
        if self._listener is not None and self._listener.current is step:
            step.set_gradient(number, self.add(step, gradient))

    def _parameter_gradient(self, name: str, parameter: torch.Tensor) -> None:
        step = self._listener.current if self._listener is not None else None
        if step is not None and parameter.grad is not None:
            step.set_named("gradient", name, self.add(step, parameter.grad))

    def _optimizer_stepped(self, *_: Any) -> None:
        if self._listener is not None:
            self._listener.optimizer_stepped()

    def _glue_scope(self) -> bool:
        """Whether an operation now is glue: inside a user's module, or between the modules."""
        if self._listener is None or not self._listener.is_within_step:
            return False
        if self._stack:
            return not is_library(self._stack[-1][0])
        return torch.is_grad_enabled()

    def _operation(self, name: str, inputs: Callable[[], Any], run: Callable[[], Any]) -> Any:
        assert self._listener is not None
        step = self._listener.current
        assert step is not None
        parent = self._stack[-1][1] if self._stack else None
        before = self._slots(step, inputs())
        output = run()
        if tree.flatten(output, self._is_activation)[0]:
            call = step.begin_call("operation", name, parent, before)
            step.end_call(call, self._slots(step, output))
        return output


def _other(first: str, name: str) -> str | None:
    return None if first == name else first


#: Dtypes that numpy shares; other tensors take the slow path.
_SIMPLE = {
    getattr(torch, name): name
    for name in "float32 float64 float16 int64 int32 int16 int8 uint8 bool".split()
}


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_NOTHING = _Nothing()


def _watch(tensor: torch.Tensor) -> Any:
    """The tensor, whose methods for hooks torch leaves without types."""
    return tensor


def is_library(module: torch.nn.Module) -> bool:
    """Whether a module's class is torch's own."""
    return type(module).__module__.partition(".")[0] == "torch"


def as_array(tensor: torch.Tensor) -> tuple[Array | None, str]:
    """A tensor's elements, without a copy on a CPU, and its dtype; or None and why not.

    bfloat16 comes as its bits in uint16; float8 and quantised numbers come as float32.

    returns: the shape of the tensor; its dtype except for those.
    """
    simple = _SIMPLE.get(tensor.dtype)
    if simple is not None:
        with contextlib.suppress(RuntimeError, TypeError):
            return tensor.detach().numpy(), simple
    try:
        return _as_array_slowly(tensor.detach())
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return None, f"{type(error).__name__}: {error}"[:500]


def _as_array_slowly(plain: torch.Tensor) -> tuple[Array, str]:
    """The same for tensors that are not on a CPU, not dense, or of a dtype that numpy lacks."""
    if plain.layout is not torch.strided or plain.is_quantized:
        plain = plain.dequantize() if plain.is_quantized else plain.to_dense()
    plain = plain.cpu().resolve_conj().resolve_neg()
    name = _dtype_name(plain)
    if name == "bfloat16":
        return plain.view(torch.int16).numpy().view(np.uint16), name
    if name.startswith("float8"):
        plain = plain.to(torch.float32)
    return plain.numpy(), name


def _dtype_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")

"""Watches a MindSpore network in PyNative mode through forward hooks and tensor hooks.

Reading a tensor inside a hook stalls MindSpore's pipeline (a quarter of the step on ResNet-50, five
times the step in backward hooks on a small network), and cells' backward hooks alone cost half a
step.  So all hooks only keep a reference; the tensors are read when the step ends, or earlier when
more than 512 MiB are held, or before Python code changes a tensor in place (`InPlaceGuard`).  On a
CPU reading is then free: the array shares the tensor's memory.

Under jit MindSpore compiles the forward hooks into the graph, where they would see no values.  They
hold an assignment expression, which its parser refuses, so that this ends in an error that
`explain` turns into a readable one, and not in a recording without values.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore network
import numpy as np

from isograd import tree
from isograd.errors import RecordingError
from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.recording.format import Slot
from isograd.recording.mindspore_glue import Glue, InPlaceGuard
from isograd.recording.observer import Facts, Listener
from isograd.tensors import Array

if TYPE_CHECKING:
    from isograd.recording.writer import StepBuilder

HELD_BYTES = 512 * 1024 * 1024

_GRAPH_ADVICE = (
    "MindSpore's hooks are silent under GRAPH_MODE and inside jit: record with "
    "mindspore.set_context(mode=mindspore.PYNATIVE_MODE) and without mindspore.jit, and call the "
    "network itself inside of `with`."
)


class MindSporeObserver:
    """The `Observer` of MindSpore."""

    silence_advice = _GRAPH_ADVICE

    def __init__(self, model: Any, optimizer: Any) -> None:
        self._model = model
        self._optimizer = optimizer
        self._cells: list[tuple[str, Any]] = list(model.cells_and_names())
        self._handles: list[Any] = []
        self._step_handles: list[Any] = []
        self._held: list[tuple[StepBuilder, int, Any]] = []
        self._held_bytes = 0
        self._seen: dict[int, tuple[Any, int]] = {}
        self._stack: list[tuple[Any, int]] = []
        self._never_called: set[str] = set()
        self._listener: Listener | None = None
        self._glue: Glue | None = None
        self._guard = InPlaceGuard(self._before_change)

    def module_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._cells)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, mindspore.Tensor)

    def silent(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._cells if name in self._never_called)

    def facts(self) -> Facts:
        changed = [
            "forward hooks on cells, hooks on tensors and on parameters",
            "Tensor's methods and functions that work in place were wrapped",
        ]
        if self._glue is not None:
            changed.append(
                "functions of mindspore.ops and mindspore.mint and Tensor's methods were wrapped; "
                "functions that were imported by name before recording began are not seen"
            )
        seed = mindspore.get_seed()
        return Facts(
            framework="mindspore",
            framework_version=str(mindspore.__version__),
            device=str(mindspore.get_context("device_target")),
            seeds={} if seed is None else {"mindspore": int(seed)},
            changed=tuple(changed),
        )

    def structure(self) -> Structure:
        modules = tuple(
            ModuleInfo(name, type(cell).__name__, is_library(cell), str(cell.extend_repr()))
            for name, cell in self._cells
        )
        first: dict[int, str] = {}
        parameters = tuple(
            ParameterInfo(
                name=name,
                module=owner,
                attribute=attribute,
                shape=tuple(parameter.shape),
                dtype=_dtype_name(parameter),
                trainable=bool(parameter.requires_grad),
                tied_to=first[id(parameter)]
                if first.setdefault(id(parameter), name) != name
                else None,
            )
            for name, owner, attribute, parameter in self._parameters()
        )
        return Structure("mindspore", modules, parameters)

    def state(self) -> Iterator[tuple[str, Any]]:
        for name, _, _, parameter in self._parameters():
            yield name, parameter

    def attach(self, listener: Listener, modules: frozenset[str], glue: bool) -> None:
        self._refuse_graphs(modules)
        self._listener = listener
        self._never_called = set(modules)
        keep = self._handles.append
        for name, cell in self._cells:
            if name in modules:
                before = functools.partial(self._before, name)
                keep(cell.register_forward_pre_hook(before, with_kwargs=True))
                keep(cell.register_forward_hook(self._after, always_call=True))
        for name, owner, _, parameter in self._parameters():
            if parameter.requires_grad and owner in modules:
                keep(parameter.register_hook(functools.partial(self._parameter_gradient, name)))
        if isinstance(self._optimizer, mindspore.nn.Cell):
            keep(self._optimizer.register_forward_hook(self._optimizer_stepped))
        self._guard.attach()
        if glue:
            self._glue = Glue(self._glue_scope, self._operation)
            self._glue.attach()

    def explain(self, error: BaseException) -> RecordingError | None:
        text = str(error)
        if "_forward_pre_hook" in text or "_forward_hook" in text or __file__ in text:
            return RecordingError(
                "the network was compiled while it was being recorded, and MindSpore could not "
                "compile the recorder's hooks",
                _GRAPH_ADVICE,
            )
        return None

    def detach(self) -> None:
        if self._glue is not None:
            self._glue.detach()
            self._glue = None
        self._guard.detach()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._forget()
        self._listener = None

    def settle(self, step: StepBuilder) -> None:
        self._read_held()
        self._forget()

    def add(self, step: StepBuilder, tensor: Any) -> int:
        number = step.reserve()
        self._fill(step, number, tensor)
        return number

    def _fill(self, step: StepBuilder, number: int, tensor: Any) -> None:
        with self._guard.paused():
            array, dtype = as_array(tensor)
        if array is None:
            step.fill_missing(number, _dtype_name(tensor), tuple(tensor.shape), dtype)
        else:
            step.fill(number, array, dtype)

    def _parameters(self) -> Iterator[tuple[str, str, str, Any]]:
        """Name, owning cell, attribute and parameter; the name is the path of the attribute."""
        for owner, cell in self._cells:
            for attribute, parameter in cell._params.items():
                if parameter is not None:
                    path = f"{owner}.{attribute}" if owner else attribute
                    yield path, owner, attribute, parameter

    def _refuse_graphs(self, modules: frozenset[str]) -> None:
        if mindspore.get_context("mode") == mindspore.GRAPH_MODE:
            raise RecordingError("MindSpore is in GRAPH_MODE", _GRAPH_ADVICE)
        for name, cell in self._cells:
            if not getattr(cell.construct, "__wrapped_by_jit__", False):
                continue
            hidden = [
                inner
                for inner, _ in self._cells
                if inner in modules and inner != name and (not name or inner.startswith(f"{name}."))
            ]
            if hidden:
                raise RecordingError(
                    f"the construct of cell {name!r} ({type(cell).__name__}) is compiled by jit, "
                    f"so {len(hidden)} watched cells inside it would stay silent",
                    _GRAPH_ADVICE + " Or watch only cells outside of it with modules=….",
                )

    def _forget(self) -> None:
        for handle in self._step_handles:
            handle.remove()
        self._step_handles.clear()
        self._held.clear()
        self._held_bytes = 0
        self._seen.clear()
        self._stack.clear()

    def _before(self, name: str, cell: Any, args: Any, kwargs: Any = None) -> None:
        self._never_called.discard(name)
        assert self._listener is not None
        if (step := self._listener.current if self._stack else self._listener.at_call()) is None:
            return
        parent = self._stack[-1][1] if self._stack else None
        inputs = self._slots(step, (tuple(args), dict(kwargs or {})))
        self._stack.append((cell, step.begin_call("module", name, parent, inputs)))

    def _after(self, cell: Any, args: Any, output: Any) -> None:
        if not any(entry is cell for entry, _ in self._stack):
            return
        while (top := self._stack.pop())[0] is not cell:
            pass
        assert self._listener is not None
        step = self._listener.current
        if step is not None:
            step.end_call(top[1], self._slots(step, output))

    def _slots(self, step: StepBuilder, nested: Any) -> tuple[Slot, ...]:
        tensors, skeleton = tree.flatten(nested, self.is_tensor)
        names = tree.slot_names(skeleton)
        return tuple(
            Slot(name, self._value(step, tensor))
            for name, tensor in zip(names, tensors, strict=True)
        )

    def _value(self, step: StepBuilder, tensor: Any) -> int:
        known = self._seen.get(id(tensor))
        if known is not None:
            return known[1]
        number = step.reserve()
        self._hold(step, number, tensor)
        self._seen[id(tensor)] = (tensor, number)
        if _dtype_name(tensor).startswith(("float", "bfloat", "complex")):
            hook = functools.partial(self._gradient, step, number)
            # MindSpore refuses a hook where no gradient will arrive: outside of value_and_grad,
            # and on inputs that are not differentiated.  It offers no way to ask before.
            with contextlib.suppress(RuntimeError):
                self._step_handles.append(tensor.register_hook(hook))
        return number

    def _gradient(self, step: StepBuilder, number: int, gradient: Any) -> None:
        if self._listener is not None and self._listener.current is step:
            held = step.reserve()
            self._hold(step, held, gradient)
            step.set_gradient(number, held)

    def _parameter_gradient(self, name: str, gradient: Any) -> None:
        step = self._listener.current if self._listener is not None else None
        if step is not None:
            held = step.reserve()
            self._hold(step, held, gradient)
            step.set_named("gradient", name, held)

    def _hold(self, step: StepBuilder, number: int, tensor: Any) -> None:
        self._held.append((step, number, tensor))
        self._held_bytes += int(tensor.nbytes)
        if self._held_bytes > HELD_BYTES:
            self._read_held()

    def _read_held(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        for step, number, tensor in held:
            self._fill(step, number, tensor)

    def _before_change(self) -> None:
        """A tensor is about to be changed in place: what was seen so far is read first."""
        self._read_held()
        self._seen.clear()

    def _optimizer_stepped(self, *_: Any) -> None:
        if self._listener is not None:
            self._listener.optimizer_stepped()

    def _glue_scope(self) -> bool:
        if self._listener is None or not self._listener.is_within_step:
            return False
        return not self._stack or not is_library(self._stack[-1][0])

    def _operation(self, name: str, inputs: Any, run: Callable[[], Any]) -> Any:
        assert self._listener is not None
        step = self._listener.current
        assert step is not None
        parent = self._stack[-1][1] if self._stack else None
        before = self._slots(step, inputs)
        output = run()
        if tree.flatten(output, self.is_tensor)[0]:
            call = step.begin_call("operation", name, parent, before)
            step.end_call(call, self._slots(step, output))
        return output


def is_library(cell: Any) -> bool:
    """Whether a cell's class is MindSpore's own."""
    return type(cell).__module__.partition(".")[0] == "mindspore"


#: Names of dtypes that NumPy has; asking a tensor or a dtype for its name takes 10 to 20 µs.
_NAMES = {np.dtype(name): name for name in ("float32", "float64", "int32", "int64", "bool")}


def as_array(tensor: Any) -> tuple[Array | None, str]:
    """A tensor's elements, without a copy on a CPU, and its dtype; or None and why not.

    bfloat16 comes as its bits in uint16.

    returns: the shape of the tensor; its dtype, or uint16 for bfloat16.
    """
    try:
        array = tensor.asnumpy()
        if known := _NAMES.get(array.dtype):
            return array, known
        name = _dtype_name(tensor)
        if name == "bfloat16":
            if array.dtype.itemsize != 2:
                return None, f"bfloat16 came as {array.dtype}"
            return array.view(np.uint16), name
        return array, str(array.dtype)
    except (RuntimeError, TypeError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}"[:500]


def _dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).lower()

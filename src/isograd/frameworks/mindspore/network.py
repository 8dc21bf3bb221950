"""A MindSpore network in this process: built, described and loaded.

PyNative mode with synchronous execution throughout; `jit` is switched off, because compiled
code cannot be watched.  Both are reported as changed by `describe`.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import platform
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn

from isograd.errors import CaseError, UserCodeError
from isograd.frameworks.base import (
    DropoutSite,
    Floors,
    MaskDraw,
    ModuleInfo,
    ParameterInfo,
    SideSpec,
    Structure,
    Tensors,
)
from isograd.frameworks.common import (
    RecordedCall,
    load_callables,
    reset_network,
    with_tensors,
    yielded,
)
from isograd.frameworks.instructions import words_of_limit
from isograd.frameworks.mindspore.construction import ConstructionLog, is_library
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.kept import kept_state
from isograd.frameworks.mindspore.known_errors import advice_for
from isograd.frameworks.mindspore.neutral import (
    install,
)
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorValue

#: The device of every MindSpore side whose case names none.
_DEVICE = "ISOGRAD_DEVICE"


def force_eager() -> None:
    """PyNative mode, in which an error surfaces at the operator that caused it."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()


class MindSporeNetwork:
    """One MindSpore network with its state; `MindSporePasses` runs it."""

    name = "mindspore"

    def __init__(self) -> None:
        self._spec: SideSpec | None = None
        self._model = nn.Cell()
        self._cells: dict[str, nn.Cell] = {}
        self._parameters: dict[str, Any] = {}
        #: The cell that holds each of them.
        self._owners: dict[str, nn.Cell] = {}
        self._buffer_places: dict[str, tuple[dict[str, Any], str]] = {}
        self._calls: list[RecordedCall] = []
        self._mode = "train"
        self._dropouts: list[DropoutSite] = []
        self._drawn: tuple[str, ...] = ()
        self._masks: tuple[MaskDraw, ...] = ()
        #: The seed with which replays draw as the network does; None: they draw neutrally.
        self._chance_seed = 0
        self._live: frozenset[str] = frozenset()
        self._built = ConstructionLog()
        self._lines: list[tuple[str, int] | None] = []
        self._pinned_lines: list[tuple[str, int] | None] = []
        #: Names of the functions at these lines.
        self._functions: list[str] = []
        self.floors: Floors = {}
        self._prepare()

    @staticmethod
    def _prepare() -> None:
        force_eager()
        ms.jit = _no_jit
        install()

    def describe(self) -> dict[str, str]:
        return {
            "framework": self.name,
            "framework_version": str(ms.__version__),
            "python_version": platform.python_version(),
            "numpy_version": np.__version__,
            "changed": "PyNative mode; synchronous execution; jit switched off; "
            "dropout passes its input; random draws are constants" + words_of_limit(os.environ),
            "device": str(ms.get_context("device_target")),
        }

    def build(self, spec: SideSpec, seed: int) -> Structure:
        self._spec = spec
        device = spec.device or os.environ.get(_DEVICE)
        if device is not None:
            _set_device(device)
        builder = load_callables(spec, "port")
        ms.set_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - the user's network may draw from it
        with user_code(f"the model callable {spec.model}"), self._built.noting():
            model = builder(**spec.model_kwargs)
        if not isinstance(model, nn.Cell):
            raise CaseError(
                f"{spec.model} returned a {type(model).__name__}, not a mindspore.nn.Cell",
                "Return the network.",
            )
        force_eager()
        if inspect.isgeneratorfunction(type(model).construct):
            construct = model.construct
            model.construct = lambda *args, **kwargs: yielded(construct(*args, **kwargs))
        self._model = model
        self._cells = dict(model.cells_and_names())
        return self._structure()

    def _structure(self) -> Structure:
        modules = tuple(self._module_info(name, cell) for name, cell in self._cells.items())
        infos = tuple(self._parameter_infos())
        return Structure(self.name, modules, infos)

    def _module_info(self, name: str, cell: nn.Cell) -> ModuleInfo:
        built = self._built.of(cell)
        return ModuleInfo(
            name,
            type(cell).__name__,
            is_library(cell),
            _settings(cell),
            built.where,
            built.plain_arguments,
        )

    def _parameter_infos(self) -> Iterator[ParameterInfo]:
        first: dict[int, str] = {}
        for module, cell in self._cells.items():
            buffers = _buffers_of(cell)
            own = [(a, p, False) for a, p in cell._params.items()]
            own += [(a, b, True) for a, b in buffers.items()]
            for attribute, tensor, is_buffer in own:
                if tensor is None:
                    continue
                path = f"{module}.{attribute}" if module else attribute
                name = path if is_buffer else str(tensor.name)
                if name in self._parameters:
                    name = path
                tied = first.get(id(tensor))
                self._parameters[name] = tensor
                self._owners[name] = cell
                if is_buffer:
                    self._buffer_places[name] = (buffers, attribute)
                first.setdefault(id(tensor), name)
                yield ParameterInfo(
                    name,
                    module,
                    attribute,
                    tuple(tensor.shape),
                    to_value(tensor).dtype,
                    bool(getattr(tensor, "requires_grad", False)) and not is_buffer,
                    is_buffer,
                    tied,
                )

    def _look_up_buffers(self) -> None:
        """Take the buffers that the network holds now: `self.steps += 1` binds a new tensor."""
        for name, (buffers, attribute) in self._buffer_places.items():
            if isinstance(buffers.get(attribute), ms.Tensor):
                self._parameters[name] = buffers[attribute]

    def state(self) -> Tensors:
        self._look_up_buffers()
        return {name: to_value(t) for name, t in self._parameters.items()}

    def load_state(self, tensors: Tensors) -> None:
        """Overwrite parameters and buffers; CaseError is raised for an unknown name or a wrong
        shape.
        """
        self._look_up_buffers()
        for name, value in tensors.items():
            target = self._parameters.get(name)
            if target is None or tuple(target.shape) != value.shape:
                raise CaseError(
                    f"the MindSpore network has no tensor {name!r} of shape {value.shape}",
                    "Correct [weights].rename.",
                )
            tensor = from_value(value, target.dtype)
            # Not set_data: after it, an optimizer that has stepped leaves the parameter unchanged.
            if isinstance(target, ms.Parameter):
                ms.ops.assign(target, tensor)
            else:
                target.copy_(tensor)

    def _loss_of(self, output: Any, targets: list[TensorValue]) -> Any:
        assert self._spec is not None
        assert self._spec.loss is not None
        function = load_callable(self._spec.loss, self._spec.folder, "[port] loss")
        with user_code(f"the loss {self._spec.loss}", advice_for):
            loss = function(output, *with_tensors(list(targets), from_value))
        if not isinstance(loss, ms.Tensor):
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a {type(loss).__name__}, not a tensor",
                "Return the scalar loss.",
            )
        return loss

    @contextlib.contextmanager
    def _restoring(self, mode: str, part: nn.Cell | None = None, seed: int = 0) -> Iterator[None]:
        """Set the mode, and give back modes, the network's state and the seed afterwards.

        State is what does not learn: statistics, counters, queues; `self.steps += 1` binds a new
        tensor, so that what was bound before is bound again.  part: the one cell that is to run;
        only its state is given back.
        """
        modes = [(cell, cell.training) for cell in self._cells.values()]
        phase = self._model._phase  # set_train changes it too
        self._look_up_buffers()
        root = self._model if part is None else part  # a part may be empty, and then false
        cells = [cell for _, cell in root.cells_and_names()]
        inside = {id(cell) for cell in cells}
        still = {
            name: to_value(p)
            for name, p in self._parameters.items()
            if not getattr(p, "requires_grad", False) and id(self._owners[name]) in inside
        }
        places = [p for cell in cells for p in (cell.__dict__, _buffers_of(cell))]
        bound = [(p, {k: v for k, v in p.items() if isinstance(v, ms.Tensor)}) for p in places]
        kept = kept_state(cells)
        ms.set_seed(1 + seed)
        self._model.set_train(mode == "train")
        reset_network(self._spec, self._model, "port")
        try:
            yield
        finally:
            kept.put_back()
            for place, tensors in bound:
                place.update(tensors)
            self.load_state(still)
            for cell, training in modes:
                cell.training = training
            self._model._phase = phase


def _set_device(device: str) -> None:
    """Run on this device; before anything else of MindSpore's runs."""
    try:
        ms.set_device(device)
        ms.ops.ones((1,), ms.float32).asnumpy()
    except Exception as error:  # whatever the driver says
        said = " ".join(str(error).split())[:200]
        raise CaseError(
            f"[port] device = {device!r} does not run here: {said}",
            "Install MindSpore for this device, or leave the key out.",
        ) from None


def _buffers_of(cell: nn.Cell) -> dict[str, Any]:
    """The buffers of a torch-shaped cell."""
    return getattr(cell, "_buffers", None) or {}


def _settings(cell: nn.Cell) -> str:
    try:
        return str(cell.extend_repr())
    except Exception:  # a user's cell may describe itself wrongly; the text is only a help
        return ""


def _no_jit(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Stands in for `mindspore.jit`: compiled code cannot be watched."""
    if callable(function):
        return function
    return lambda wrapped: wrapped

"""What a compiled training step is made of beside its optimizer: clipping, scaling, being kept."""

from __future__ import annotations

import warnings
from functools import partial
from types import MethodType
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn, ops  # noqa: TID253

from isograd.runtime.training_constants import Constants, cells_of
from isograd.runtime.training_steps import OTHER, GraphOptimizer, name_apart, unique_name

#: The networks of compiled steps by identity; they live on in what `kept_for_each` keeps.
STEPPED: set[int] = set()
#: So often a step is compiled for other constants before a line says so.
_MANY = 8


def kept_for_each(make: Any) -> Any:
    """Call a function that makes steps once for the same objects in the same modes.

    A compiled step has the mode and the learning parameters of its networks in it.
    """
    kept: dict[Any, Any] = {}

    def mode(part: Any) -> Any:
        if isinstance(part, MethodType):  # a new object each time that it is read
            return id(part.__self__), part.__func__, tuple(map(mode, cells_of(part)))
        if isinstance(part, GraphOptimizer) or not isinstance(part, nn.Cell):
            return part if isinstance(part, (int, float, str, bool, type(None))) else id(part)
        modes = tuple(cell.training for _, cell in part.cells_and_names())
        return id(part), modes, tuple(own.requires_grad for own in part.get_parameters())

    def keeping(*parts: Any) -> Any:
        key = tuple(mode(part) for part in parts)
        if key not in kept:
            cells = [cell for part in parts for cell in cells_of(part)]
            STEPPED.update(map(id, cells))
            for cell in cells:
                for _, part in cell.cells_and_names():
                    part.compiled_as = id(part)  # a copy of it is another one
            name_apart(one for cell in cells for one in cell.get_parameters())
            kept[key] = Steps(make, parts)  # the parts live on: their identities stay theirs
        return kept[key].callable()

    return keeping


class Steps:
    """Compiled steps of the same objects in the same modes, made anew where a constant changes."""

    def __init__(self, make: Any, parts: Any) -> None:
        self.make, self.parts = make, parts
        self.made: list[tuple[Constants, Any]] = []
        self.settled: set[Any] = set()
        count = len(self.current()[1])
        self.calls: list[Any] = [partial(self.call, number) for number in range(count)]

    def callable(self) -> Any:
        """What calls the step, or a tuple of what calls each of several."""
        return self.calls[0] if len(self.calls) == 1 else tuple(self.calls)

    def current(self) -> Any:
        """The constants that are as they are now, and the steps with these."""
        changed = ""
        for constants, steps in reversed(self.made):
            name = constants.changed()
            if not name:
                return constants, steps
            changed = changed or name
        if len(self.made) == _MANY:
            message = f"steps are compiled again and again, as {changed} changes. {OTHER}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        made = self.make(*self.parts)
        several = made if isinstance(made, tuple) else (made,)
        steps = [_once_compiled(one) for one in several]
        self.made.append((Constants(self.parts, several), steps))
        return self.made[-1]

    def call(self, number: int, *values: Any, **by_name: Any) -> Any:
        """Take one of the steps."""
        constants, steps = self.current()
        result = steps[number](*values, **by_name)
        if steps[number] not in self.settled:
            self.settled.add(steps[number])
            constants.settle()
        return result


def _once_compiled(step: Any) -> Any:
    """A step whose dictionaries of tensors and changing numbers are inputs, and not constants.

    The compiler compiles anew for each constant.  A number with a point is one until it changes,
    and stays one where the graph needs it so (`delta` of a loss, the slope of a leaky relu).
    """
    first: dict[Any, float] = {}
    changing: set[Any] = set()
    constant: set[Any] = set()

    def is_new(place: Any, value: Any) -> bool:
        """Whether a number differs from its first value, for the first time."""
        if not _is_constant_number(value) or first.setdefault(place, value) == value:
            return False
        return place not in changing | constant

    def given(place: Any, value: Any) -> Any:
        if _is_constant_number(value):
            return ms.mutable(float(value)) if place in changing else float(value)
        return ms.mutable(value) if _holds_tensors_alone(value) else value

    def called(inputs: Any, named: Any) -> Any:
        own = [given(place, value) for place, value in enumerate(inputs)]
        return step(*own, **{name: given(name, value) for name, value in named.items()})

    def call(*values: Any, **by_name: Any) -> Any:
        inputs = tuple(map(_of_numpy, values))
        named = {name: _of_numpy(value) for name, value in by_name.items()}
        new = {
            place for place, value in (*enumerate(inputs), *named.items()) if is_new(place, value)
        }
        if not new:
            return called(inputs, named)
        changing.update(new)
        try:
            return called(inputs, named)
        except (TypeError, ValueError, RuntimeError):  # while compiling: nothing has changed yet
            changing.difference_update(new)
            constant.update(new)
        return called(inputs, named)

    return call


def _of_numpy(value: Any) -> Any:
    """A tensor of an array, a number of numpy's number: no graph takes numpy's own."""
    if isinstance(value, np.ndarray):
        return ms.Tensor(value)
    return value.item() if isinstance(value, np.generic) else value


def _is_constant_number(value: Any) -> bool:
    """Whether the compiler takes a number with a point for a constant."""
    return isinstance(value, float) and not hasattr(value, "__ms_mutable__")


def _holds_tensors_alone(value: Any) -> bool:
    """Whether a tuple, list or dictionary has tensors in it and nothing else."""
    if not isinstance(value, (tuple, list, dict)) or not value or hasattr(value, "__ms_mutable__"):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return all(isinstance(part, ms.Tensor) or _holds_tensors_alone(part) for part in parts)


def varying(value: Any) -> Any:
    """What the last step made: tensors in a tuple are inputs of the next one, not constants."""
    return ms.mutable(value) if isinstance(value, (tuple, list, dict)) else value


def sum_of_squares(values: Any) -> Any:
    """The sum of the squares of all elements, in rows that are short enough to be exact.

    On a CPU, a sum over several axes is slow, one over (n, 1) or a long row adds in float32 one
    element after another, and one over a vector is exact but slower than one over rows.
    """
    squares = ops.square(values)
    for width in (256, 128, 64, 32, 16):
        if values.size % width == 0:
            return squares.reshape(-1, width).sum(-1).sum()
    return squares.reshape(-1).sum()


def _each_times(factor: Any, gradients: Any) -> tuple[Any, ...]:
    """Each gradient times a factor.

    The compiler takes a tenth of the time for `map` that it takes for a comprehension.
    """
    return tuple(map(partial(_times, factor), gradients))


def _times(factor: Any, gradient: Any) -> Any:
    return gradient * factor.astype(gradient.dtype)


def clipped_by_norm(gradients: Any, bound: Any) -> tuple[Any, Any]:
    """torch's clip_grad_norm_ of gradients: what they become, and their norm before."""
    norm = ops.sqrt(ops.stack(tuple(map(sum_of_squares, gradients))).sum())
    factor = ops.minimum(bound / (norm + 1e-6), ops.ones_like(norm))
    return _each_times(factor, gradients), norm


def clipped_by_value(gradients: Any, bound: Any) -> tuple[Any, Any]:
    """torch's clip_grad_value_ of gradients; the second result is none of interest."""
    return tuple(map(partial(_clamped, bound), gradients)), bound


def _clamped(bound: Any, gradient: Any) -> Any:
    return ops.clamp(gradient, -bound, bound)


def require_same(optimizer: Any, parameters: Any) -> None:
    """Raise RuntimeError unless these parameters, as far as they learn, are the optimizer's."""
    clipped = {id(part) for part in parameters if part.requires_grad}
    if clipped != {id(part) for part in optimizer.parameters}:
        raise RuntimeError(
            f"gradients of other parameters than the optimizer's are clipped or zeroed. {OTHER}"
        )


class unrecorded:  # noqa: N801  # it stands for torch.no_grad
    """torch.no_grad where steps are compiled: nothing outside of them is recorded anyway."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        """The function itself."""
        return function


def _is_finite(gradient: Any) -> Any:
    return ops.isfinite(gradient).all()


class GraphScaler(nn.Cell):  # type: ignore[misc]
    """torch's GradScaler inside a compiled step; off without an accelerator, as torch's."""

    def __init__(
        self,
        device: Any = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(auto_prefix=False)
        if isinstance(device, (int, float)):  # torch.cuda.amp.GradScaler has no device
            device, init_scale = "cuda", device
        on_cpu = ms.get_context("device_target") == "CPU"
        self.scales = bool(enabled) and (str(device).startswith("cpu") or not on_cpu)
        self.growth, self.backoff, self.interval = growth_factor, backoff_factor, growth_interval
        name = unique_name("scaler")
        self.factor = ms.Parameter(
            ms.Tensor(init_scale, ms.float32),
            name=f"{name}.scale",
            requires_grad=False,
        )
        self.clean = ms.Parameter(ms.Tensor(0, ms.int32), name=f"{name}.clean", requires_grad=False)

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self.scales

    def get_scale(self) -> float:
        """The factor of the loss."""
        return float(self.factor.asnumpy()) if self.scales else 1.0

    def scaled(self, loss: Any) -> Any:
        """A loss times the factor."""
        return loss * self.factor.astype(loss.dtype) if self.scales else loss

    def unscaled(self, gradients: Any) -> tuple[Any, Any]:
        """Gradients over the factor, and whether all are finite."""
        if not self.scales:
            return gradients, True
        found = _each_times(1.0 / self.factor, gradients)
        return found, ops.stack(tuple(map(_is_finite, found))).all()

    def adjust(self, is_finite: Any) -> Any:
        """The next factor: smaller after an overflow, greater after many clean steps."""
        if not self.scales:
            return is_finite
        clean = ops.where(is_finite, self.clean + 1, ops.zeros_like(self.clean))
        grows = clean >= self.interval
        factor = ops.where(is_finite, self.factor, self.factor * self.backoff)
        ops.assign(self.factor, ops.where(grows, factor * self.growth, factor))
        return ops.assign(self.clean, ops.where(grows, ops.zeros_like(clean), clean))

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        if not self.scales:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self.growth,
            "backoff_factor": self.backoff,
            "growth_interval": self.interval,
            "_growth_tracker": int(self.clean.asnumpy()),
        }

    def load_state_dict(self, state_dict: Any, *_: Any) -> None:
        """Go on from a checkpoint."""
        if self.scales and state_dict:
            ops.assign(self.factor, ms.Tensor(float(state_dict["scale"]), ms.float32))
            ops.assign(self.clean, ms.Tensor(int(state_dict["_growth_tracker"]), ms.int32))


def scaler_if_any(scaler: Any) -> GraphScaler:
    """A scaler, or one that is off where there is none: its step is the plain one."""
    return GraphScaler(enabled=False) if scaler is None else scaler

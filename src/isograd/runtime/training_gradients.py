"""Gradients as torch keeps them: `loss.backward()` adds them to `parameter.grad`.

MindSpore records what is computed inside `value_and_grad`.  Here the same recorder of PyNative mode
is left on between steps, so that a loss computed line by line can be differentiated afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253
from mindspore.common import api  # noqa: TID253

from isograd.runtime.training_recorder import (
    Switches,
    is_grad_enabled,
    is_in_backward,
    record_gradients,
    set_switches,
    switched,
)
from isograd.runtime.training_scaling import sum_of_squares

#: MindSpore 2.10's second derivatives in PyNative mode lose what goes through a product of
#: matrices, a transpose or a reshape; compiled functions have them right.
_NO_SECOND = (
    "gradients of gradients: write the function, take mindspore.grad of it twice, and compile that "
    "with mindspore.jit."
)
#: The parameters that were differentiated before, and those of optimizers.
_PARAMETERS: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
#: What is done to each new gradient of a parameter before it is added.
AFTER_BACKWARD: list[Callable[[Any, Any], Any]] = []


@contextlib.contextmanager
def _recorded() -> Iterator[None]:
    """Record while a gradient is taken, and from there on; inside a backward, no longer."""
    goes_on = api._pynative_executor.grad_flag() or not is_in_backward()
    record_gradients()
    try:
        yield
    finally:
        api._pynative_executor.set_grad_flag(goes_on)


class _Recording:
    """Switches the recorder on or off, for a block or a function."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before: list[Switches] = []

    def __enter__(self) -> None:
        self._before.append(switched(self.mode))

    def __exit__(self, *_: object) -> None:
        set_switches(self._before.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def in_its_mode(*inputs: Any, **named: Any) -> Any:
            with _Recording(self.mode):
                return function(*inputs, **named)

        return in_its_mode


def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Record nothing, in a block or in a function."""
    switch = _Recording(mode=False)
    return switch(function) if callable(function) else switch


def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Record again, in a block or in a function."""
    switch = _Recording(mode=True)
    return switch(function) if callable(function) else switch


def inference_mode(mode: Any = True) -> Any:
    """Record nothing, in a block or in a function."""
    if callable(mode):
        return no_grad(mode)
    return _Recording(mode=not mode and is_grad_enabled())


class set_grad_enabled(_Recording):  # noqa: N801  # torch's name
    """Record or not, from here on or for a block."""

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._outer = switched(self.mode)

    def __enter__(self) -> None:
        self._before.append(self._outer)
        switched(self.mode)


def backward(tensor: Any, *given: Any, **named: Any) -> Any:
    """Add the gradients of a tensor to the `grad` of each parameter that it was computed from.

    Arguments are those of torch's method.  Anything but a tensor has its own `backward` called.
    Raises RuntimeError where nothing was recorded, and for gradients of gradients.
    """
    if not isinstance(tensor, ms.Tensor):
        return tensor.backward(*given, **named)
    order = ("gradient", "retain_graph", "create_graph", "inputs")
    options = {**dict(zip(order, given, strict=False)), **named}
    if options.get("create_graph"):
        raise RuntimeError(_NO_SECOND)
    if options.get("inputs") is not None:
        raise RuntimeError("backward adds to all parameters here; ask mindspore.grad for some.")
    _differentiate([tensor], [options.get("gradient")], keeps=bool(options.get("retain_graph")))
    return None


def backward_of_all(
    tensors: Any, grad_tensors: Any = None, retain_graph: Any = None, create_graph: bool = False
) -> None:
    """Add the gradients of several tensors at once; RuntimeError for gradients of gradients."""
    if create_graph:
        raise RuntimeError(_NO_SECOND)
    several = [tensors] if isinstance(tensors, ms.Tensor) else list(tensors)
    given = [grad_tensors] if isinstance(grad_tensors, ms.Tensor) else grad_tensors
    _differentiate(several, list(given or [None] * len(several)), keeps=bool(retain_graph))


def gradients(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: Any = None,
    create_graph: bool = False,
    allow_unused: Any = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients by parameters, or by tensors that were computed, as torch.autograd.grad.

    Nothing is added to their `grad`.  Raises RuntimeError for gradients of gradients, and for an
    input that the outputs do not depend on, unless that is allowed.
    """
    if create_graph:
        raise RuntimeError(_NO_SECOND)
    wanted = [inputs] if isinstance(inputs, ms.Tensor) else list(inputs)
    several = [outputs] if isinstance(outputs, ms.Tensor) else list(outputs)
    given = [grad_outputs] if isinstance(grad_outputs, ms.Tensor) else grad_outputs
    with _recorded():
        total = _total(several, list(given or [None] * len(several)))
        found = _by_any(total, wanted, keeps=bool(retain_graph))
    if not (allow_unused or materialize_grads or all(id(part) in found for part in wanted)):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used")
    unused = [ops.zeros_like(part) if materialize_grads else None for part in wanted]
    return tuple(found.get(id(part), none) for part, none in zip(wanted, unused, strict=True))


def _total(tensors: list[Any], gradients: list[Any]) -> Any:
    """The sum whose gradient is asked for."""
    total = None
    for tensor, gradient in zip(tensors, gradients, strict=True):
        if gradient is None and tensor.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        part = tensor if gradient is None else tensor * ops.stop_gradient(gradient)
        part = part.sum()
        total = part if total is None else total + part
    assert total is not None
    if total._grad_node is None:
        raise RuntimeError("element 0 of tensors does not require grad: nothing was recorded.")
    return total


def _by_any(total: Any, wanted: list[Any], *, keeps: bool) -> dict[int, Any]:
    """The gradients of a number by those tensors that it depends on, by their identity.

    Hooks see those of computed tensors.  What was recorded before these stays, as in torch.
    """
    computed = [part for part in wanted if not isinstance(part, ms.Parameter)]
    leaves = _leaves(total)
    of_wanted = [part for part in wanted if _leaf(part) in leaves]
    parameters = parameters_reached(total) if computed else of_wanted
    seen: dict[int, Any] = {}
    hooks = [
        part.register_hook(functools.partial(seen.__setitem__, id(part)))
        for part in computed
        if part._grad_node is not None
    ]
    try:
        values = _by(total, parameters, keeps=keeps or bool(computed))
    finally:
        for hook in hooks:
            hook.remove()
    found = {identity: ops.stop_gradient(value) for identity, value in seen.items()}
    return found | dict(zip(map(id, parameters), values, strict=True))


def _by(total: Any, parameters: list[Any], *, keeps: bool) -> tuple[Any, ...]:
    """The gradients of a number by parameters.

    keeps: what was recorded stays for another gradient.  MindSpore keeps it where a gradient is
    taken inside another function that is differentiated; this is one.  Inside a backward it
    would keep it for good: there a second gradient of the same raises RuntimeError.
    """
    keeps = keeps and not is_in_backward()

    def around() -> Any:
        return total

    if not parameters:
        return ()
    if keeps:
        api._pynative_executor.new_graph(around)
    try:
        found = ms.grad(lambda: total, None, tuple(parameters))()
    finally:
        if keeps:
            api._pynative_executor.end_graph(around, total)
    several = (found,) if isinstance(found, ms.Tensor) else found
    return tuple(map(ops.stop_gradient, several)) if keeps else several


def _differentiate(tensors: list[Any], gradients: list[Any], *, keeps: bool) -> None:
    with _recorded():
        total = _total(tensors, gradients)
        reached = parameters_reached(total)
        found = _by(total, reached, keeps=keeps)
    with no_grad():
        for parameter, gradient in zip(reached, found, strict=True):
            held = getattr(parameter, "grad", None)
            added = gradient.astype(parameter.dtype)
            for change in AFTER_BACKWARD:
                added = change(parameter, added)
            parameter.grad = added if held is None else held + added


def _leaves(tensor: Any) -> set[Any]:
    """What a tensor was computed from, as far as it was recorded."""
    leaves, seen = set(), set()
    waiting = [] if tensor._grad_node is None else [tensor._grad_node]
    while waiting:
        node = waiting.pop()
        identity = node._unique_id()
        if identity in seen:
            continue
        seen.add(identity)
        if node.is_leaf():
            leaves.add(identity)
        waiting += [part for part, _ in node.next_functions if part is not None]
    return leaves


def parameters_reached(tensor: Any) -> list[Any]:
    """The parameters that learn and that a tensor was computed from, each once."""
    leaves = _leaves(tensor)
    known = {_leaf(parameter): parameter for parameter in _PARAMETERS.values()}
    if not leaves <= known.keys():
        with contextlib.suppress(ReferenceError):
            track(item for item in gc.get_objects() if issubclass(type(item), ms.Parameter))
        known = {_leaf(parameter): parameter for parameter in _PARAMETERS.values()}
    return [known[leaf] for leaf in known if leaf in leaves and known[leaf].requires_grad]


def _leaf(parameter: Any) -> Any:
    node = parameter._grad_node
    return None if node is None else node._unique_id()


def track(parameters: Iterable[Any]) -> None:
    """Remember parameters, so that a gradient finds them."""
    for parameter in parameters:
        _PARAMETERS[id(parameter)] = parameter


def learns(tensor: Any) -> bool:
    """Whether a gradient goes through a tensor: `x.requires_grad`.

    Also by an input: MindSpore's `grad` marks all its function's arguments, and what comes of them.
    """
    if not isinstance(tensor, ms.Tensor):
        return bool(tensor.requires_grad)
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return False
    return bool(tensor.requires_grad if isinstance(tensor, ms.Parameter) else tensor._requires_grad)


def zero_grad(owner: Any, set_to_none: bool = True) -> Any:
    """Forget the gradients of a network; anything else has its own `zero_grad` called."""
    if hasattr(owner, "param_groups") or not isinstance(owner, ms.nn.Cell):
        return owner.zero_grad() if set_to_none else owner.zero_grad(set_to_none)
    for parameter in owner.get_parameters():
        held = getattr(parameter, "grad", None)
        if held is not None:
            parameter.grad = None if set_to_none else ops.zeros_like(held)
    return None


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Any:
    """Scale the gradients so that their norm is at most max_norm; returns the norm before."""
    held = list(_with_gradient(parameters))
    if not held:
        return ms.Tensor(0.0, ms.float32)
    with no_grad():
        total = get_total_norm([parameter.grad for parameter in held], norm_type)
    if error_if_nonfinite and not math.isfinite(float(total.asnumpy())):
        raise RuntimeError("The total norm of the gradients is not finite, so it cannot clip.")
    clip_grads_with_norm_(held, max_norm, total)
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None
) -> None:
    """Scale the gradients by what a norm that was taken of them exceeds max_norm."""
    with no_grad():
        factor = ops.minimum(max_norm / (total_norm + 1e-6), ms.Tensor(1.0, ms.float32))
        for parameter in _with_gradient(parameters):
            parameter.grad = parameter.grad * factor.astype(parameter.grad.dtype)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Any:
    """The norm of all tensors as if they were one vector."""
    several = [tensors] if isinstance(tensors, ms.Tensor) else list(tensors)
    kind = float(norm_type)
    if math.isinf(kind):
        return ops.stack([ops.abs(part).max() for part in several]).max()
    if kind == 2.0:
        return ops.sqrt(ops.stack([sum_of_squares(part) for part in several]).sum())
    powers = ops.stack([(ops.abs(part) ** kind).sum() for part in several])
    return powers.sum() ** (1.0 / kind)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Bound each element of the gradients."""
    with no_grad():
        for parameter in _with_gradient(parameters):
            parameter.grad = ops.clamp(parameter.grad, -float(clip_value), float(clip_value))


def _with_gradient(parameters: Any) -> Iterator[Any]:
    several = [parameters] if isinstance(parameters, ms.Tensor) else parameters
    return (part for part in several if getattr(part, "grad", None) is not None)


class autocast:  # noqa: N801  # torch's name
    """A block or function in mixed precision in torch; here it computes in the dtypes it has."""

    def __init__(
        self, device_type: Any = "cuda", dtype: Any = None, enabled: bool = True, *_: Any, **__: Any
    ) -> None:
        self.device_type, self.dtype, self.enabled = device_type, dtype, enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to undo."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class GradScaler:
    """Scales the loss, so that small gradients survive in float16; skips steps that overflow.

    Without an accelerator it is off, as torch's.
    """

    def __init__(
        self,
        device: Any = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if isinstance(device, (int, float)):  # torch.cuda.amp.GradScaler has no device
            device, init_scale = "cuda", device
        on_cpu = ms.get_context("device_target") == "CPU"
        self._enabled = bool(enabled) and (str(device).startswith("cpu") or not on_cpu)
        self._scale, self._growth, self._backoff = init_scale, growth_factor, backoff_factor
        self._interval, self._clean = growth_interval, 0
        self._unscaled: dict[int, bool] = {}
        self._overflows: list[bool] = []

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor of the loss."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """A loss, or several, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (tuple, list)):
            return type(outputs)(self.scale(part) for part in outputs)
        return outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor."""
        if not self._enabled:
            return
        if id(optimizer) in self._unscaled:
            raise RuntimeError("unscale_() has already been called since the last update().")
        is_finite = True
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in _with_gradient(group["params"]):
                    parameter.grad = parameter.grad * (1.0 / self._scale)
                    is_finite = is_finite and bool(ops.isfinite(parameter.grad).all())
        self._unscaled[id(optimizer)] = is_finite
        self._overflows.append(not is_finite)

    def step(self, optimizer: Any, *inputs: Any, **named: Any) -> Any:
        """The optimizer's step, unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*inputs, **named)
        if id(optimizer) not in self._unscaled:
            self.unscale_(optimizer)
        is_finite = self._unscaled[id(optimizer)]
        return optimizer.step(*inputs, **named) if is_finite else None

    def update(self, new_scale: Any = None) -> None:
        """Choose the next factor: smaller after an overflow, greater after many clean steps."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif any(self._overflows):
            self._scale, self._clean = self._scale * self._backoff, 0
        else:
            self._clean += 1
            if self._clean == self._interval:
                self._scale, self._clean = self._scale * self._growth, 0
        self._unscaled, self._overflows = {}, []

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._clean,
        }

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from a checkpoint."""
        if self._enabled and state_dict:
            self._scale, self._growth = state_dict["scale"], state_dict["growth_factor"]
            self._backoff = state_dict["backoff_factor"]
            self._interval = state_dict["growth_interval"]
            self._clean = state_dict["_growth_tracker"]

"""What is kept of one step of a torch training: the calls of networks, and operators between them.

A network is a module with parameters that is called from outside of all other modules.  Of its call
the arguments are kept (by reference), the random states and the buffers, so that it can be
replayed.  What runs between networks, the loss above all, is seen by a mode that is pushed only
there, so that inside of a network nothing slows down; its tensors are kept until the step ends.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch  # noqa: TID253  # this module is loaded only for a torch training

from isograd import tree
from isograd.recording.torch_recorder import is_library
from isograd.watch.frames import user_line

#: Operators between networks that are kept at most, and calls of networks.
_MOST_OPERATORS = 2000
#: Elements up to which a buffer is copied before each call.
_LARGEST_BUFFER = 1 << 20
MOST_CALLS = 16


def is_floating(value: Any) -> bool:
    """Whether a value is a tensor that can hold NaN."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def floating(nested: Any) -> list[torch.Tensor]:
    """All tensors in a nested value that can hold NaN."""
    return [t for t in tree.flatten(nested, _is_tensor)[0] if is_floating(t)]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def version_of(tensor: torch.Tensor) -> int:
    """A number that every operation in place raises; -1 where torch does not count."""
    return -1 if tensor.is_inference() else tensor._version


@dataclass
class RandomState:
    """Generators and autocast as they stood when a network was called."""

    cpu: torch.Tensor
    devices: tuple[torch.Tensor, ...]
    autocast: tuple[tuple[str, bool, torch.dtype], ...]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Run something under this state, and put the present one back."""
        now = random_state()
        torch.set_rng_state(self.cpu)
        _set_devices(self.devices)
        try:
            with contextlib.ExitStack() as stack:
                for device, enabled, dtype in self.autocast:
                    stack.enter_context(torch.autocast(device, dtype=dtype, enabled=enabled))
                yield
        finally:
            torch.set_rng_state(now.cpu)
            _set_devices(now.devices)


def uses_cuda() -> bool:
    """Whether this process has begun to use a CUDA device."""
    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def random_state() -> RandomState:
    """The present state."""
    has_devices = uses_cuda()
    kinds = ("cpu", "cuda") if has_devices else ("cpu",)
    return RandomState(
        torch.get_rng_state(),
        tuple(torch.cuda.get_rng_state_all()) if has_devices else (),
        tuple((k, torch.is_autocast_enabled(k), torch.get_autocast_dtype(k)) for k in kinds),
    )


def _set_devices(states: tuple[torch.Tensor, ...]) -> None:
    if states:
        torch.cuda.set_rng_state_all(list(states))


@dataclass
class NetworkCall:
    """One call of a network.

    gradients: of the outputs, filled by hooks in the backward pass.
    """

    module: torch.nn.Module
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    where: str
    random: RandomState
    numbers: list[tuple[dict[str, Any], dict[str, Any]]]
    buffers: list[tuple[torch.Tensor, torch.Tensor]]
    outputs: list[torch.Tensor] = field(default_factory=list)
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)

    def keep_outputs(self, output: Any) -> None:
        """Keep the outputs, and their gradients when they come."""
        tensors = floating(output)
        # Without their graphs, which a forgotten no_grad would otherwise keep alive.
        self.outputs = [tensor.detach() for tensor in tensors]
        for place, tensor in enumerate(tensors):
            if tensor.requires_grad:
                _keep_gradient(tensor, self.gradients, place)


def begin_call(
    module: torch.nn.Module, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> NetworkCall:
    """What must be kept before a network runs."""
    buffers: list[tuple[torch.Tensor, torch.Tensor]] = []
    numbers: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for part in module.modules():
        # One walk for both; `buffers()` walks once more and costs more than the copies.
        buffers += [
            (buffer, buffer.detach().clone())
            for buffer in part._buffers.values()
            if buffer is not None and buffer.numel() <= _LARGEST_BUFFER
        ]
        if not is_library(part):
            numbers.append((vars(part), _numbers(part)))
    return NetworkCall(module, name, args, kwargs, user_line(3), random_state(), numbers, buffers)


def _numbers(module: torch.nn.Module) -> dict[str, Any]:
    """The attributes of a user's module by which its calls may differ, as counters."""
    return {k: v for k, v in vars(module).items() if type(v) in (int, float, bool)}


@dataclass
class GlueOperator:
    """One operator between networks, with its tensors and the gradients of its inputs.

    input_versions, output_versions: of the tensors when it ran; one that was changed in place since
    then no longer holds what it held.
    """

    function: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any
    where: str
    module: str
    after_calls: int
    input_versions: list[int]
    output_versions: list[int]
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)

    def inputs(self) -> list[torch.Tensor]:
        """Its inputs that can hold NaN."""
        return floating((self.args, self.kwargs))


#: Functions that only read properties or change nothing that can become NaN.
_QUIET = frozenset(
    "__get__ __set__ backward detach size dim numel item tolist requires_grad_ register_hook "
    "is_floating_point is_complex to cpu cuda numpy type device stride retain_grad "
    "__len__ __repr__ __format__ zero_ clone contiguous".split()
)


class GlueMode(torch.overrides.TorchFunctionMode):
    """Sees torch's functions while it is pushed."""

    def __init__(self, seen: Callable[[str, tuple[Any, ...], dict[str, Any]], None]) -> None:
        super().__init__()
        self.operators: deque[GlueOperator] = deque(maxlen=_MOST_OPERATORS)
        self.module = ""
        self.calls = 0
        self.is_paused = False
        self._seen = seen
        self._is_pushed = False
        self._is_resumed_shown = False

    def show(self) -> None:
        """Begin to see."""
        if not self._is_pushed:
            self.__enter__()  # type: ignore[no-untyped-call]
            self._is_pushed = True

    def hide(self) -> bool:
        """Stop seeing; False where another mode was pushed above, so that this one has to stay."""
        modes = torch.overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        if not self._is_pushed or not modes or modes[-1] is not self:
            return False
        self.__exit__(None, None, None)
        self._is_pushed = False
        return True

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """See nothing inside of this context; torch passes through no mode where that is possible.

        A mode that only looks away still costs some microseconds at each access of a tensor.
        """
        is_popped = self.hide()
        try:
            yield
        finally:
            if is_popped:
                self.show()

    def pause(self) -> None:
        """See nothing until `resume`."""
        self.is_paused = True
        self._is_resumed_shown = self.hide() or self._is_resumed_shown

    def resume(self) -> None:
        """See again."""
        self.is_paused = False
        if self._is_resumed_shown:
            self._is_resumed_shown = False
            self.show()

    def forget(self, calls: int | None = None) -> None:
        """Let go of the step's tensors, or of what came before so many calls of networks."""
        if calls is None:
            self.operators.clear()
            self.calls = 0
            return
        while self.operators and self.operators[0].after_calls < calls:
            self.operators.popleft()
        for operator in self.operators:
            operator.after_calls -= calls
        self.calls -= calls

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.is_paused or name in _QUIET or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        self._seen(name, args, kwargs)
        before = [version_of(tensor) for tensor in floating((args, kwargs))]
        output = func(*args, **kwargs)
        made = args[0] if name == "__setitem__" else output
        if tensors := floating(made):
            after = [version_of(tensor) for tensor in tensors]
            where = user_line(2)
            found = GlueOperator(
                name, args, kwargs, made, where, self.module, self.calls, before, after
            )
            self.operators.append(found)
            if torch.is_grad_enabled():
                _keep_gradients(found)
        return output


def _keep_gradients(operator: GlueOperator) -> None:
    for place, tensor in enumerate(operator.inputs()):
        if tensor.requires_grad and not tensor.is_leaf:
            _keep_gradient(tensor, operator.gradients, place)


def _keep_gradient(tensor: torch.Tensor, gradients: dict[int, torch.Tensor], place: int) -> None:
    """Put a tensor's gradient into a dictionary when it comes.

    The hook holds the dictionary alone: one that also held the tensor would be a cycle through
    torch's graph, where Python's collector cannot follow, and the whole step would stay.
    """

    def keep(gradient: torch.Tensor) -> None:
        gradients[place] = gradient

    tensor.register_hook(keep)  # type: ignore[no-untyped-call]

"""Notes every MindSpore operator which touches a value that is not finite, and the gradients.

Operators are seen by `MsDispatchMode`; of the backward pass it sees only some, so the gradients
come from hooks on the operators' inputs.  The first bad gradient in the order of the backward pass
is the backward of the operator whose input it belongs to.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import mindspore  # noqa: TID253  # this module is loaded only for a MindSpore training
import numpy as np

from isograd.recording.mindspore_recorder import as_array
from isograd.watch.frames import user_line
from isograd.watch.mindspore_calls import (
    Replacements,
    executor_class,
    is_floating,
    is_tensor,
    numbers_of,
)
from isograd.watch.origin import (
    Operation,
    Origin,
    Phase,
    Status,
    TensorFacts,
    classify,
    facts_of,
    kind_of,
    trace_back,
)

#: Operators whose derivative has a pole: of several that take one tensor, these are meant.
_WITH_POLES = frozenset(
    "Sqrt Rsqrt Log Log1p Log2 Log10 Pow PowTensorScalar Div DivMod RealDiv Reciprocal Norm ACos "
    "Asin AcosExt AsinExt Atanh Erfinv LinalgVectorNorm Std StdExt Cdist".split()
)


@dataclass(frozen=True)
class _Seen:
    """One forward operator; tensors are kept so that their identities stay theirs."""

    name: str
    module: str
    where: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def kind_of_tensor(tensor: Any) -> str | None:
    """`nan`, `inf` or `-inf`, or None where all elements are finite."""
    values = numbers_of(tensor)
    if values is None or not values.size or not np.issubdtype(values.dtype, np.inexact):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return None
    nans = int(np.isnan(values).sum())
    if np.iscomplexobj(values):
        return "nan" if nans else "inf"
    return kind_of(nans, bool((values == np.inf).any()), bool((values == -np.inf).any()))


def facts(tensor: Any) -> TensorFacts:
    """What a tensor holds, for the report."""
    array, dtype = as_array(tensor)
    if array is None:
        return TensorFacts(tuple(tensor.shape), dtype, float("nan"), float("nan"), 0, 0)
    return facts_of(array, dtype, dtype == "bfloat16")


def _address(tensor: Any) -> int:
    """Where a tensor's elements lie; 0 where they cannot be read in place."""
    array, _ = as_array(tensor)
    return 0 if array is None else int(array.__array_interface__["data"][0])


def _flat(nested: Any) -> Iterator[Any]:
    for value in nested:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield value


def _is_fill(args: Any) -> bool:
    """Whether an infinity stands among the arguments as a number."""
    for value in _flat(args):
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return True
        if is_tensor(value) and value.ndim == 0 and is_floating(value):
            if np.isinf(np.float64(value.astype(mindspore.float32).asnumpy())):
                return True
    return False


class Observer(mindspore.MsDispatchMode):  # type: ignore[misc]  # MindSpore has no types
    """Notes operators by module, line and status."""

    def __init__(self, modules: Mapping[int, str], where: str) -> None:
        """modules: names of cells by identity; where: the line of the step's call."""
        super().__init__()
        self.operations: list[Operation] = []
        self.is_forward = True
        self._modules = modules
        self._where = where
        self._stack: list[tuple[str, bool]] = []
        self._seen: list[_Seen] = []
        self._statuses: dict[int, tuple[Any, Status, int | None]] = {}
        #: The same by the address of the elements: MindSpore wraps one tensor anew at times, and
        #: does not show every reshape.
        self._by_address: dict[int, tuple[Status, int | None]] = {}
        self._gradients: list[tuple[Any, Any]] = []
        self._hooked: set[int] = set()
        self._last_bad: int | None = None

    @contextlib.contextmanager
    def cells(self) -> Iterator[None]:
        """Know which cell runs, inside of this context."""
        replacements = Replacements()
        replacements.replace(mindspore.nn.Cell, "__call__", self._cell_call)
        replacements.replace(executor_class(), "grad", self._grad)
        try:
            yield
        finally:
            replacements.undo()

    def _grad(self, original: Any) -> Any:
        def grad(*args: Any) -> Any:
            self.is_forward = False
            return original(*args)

        return grad

    def _cell_call(self, original: Any) -> Any:
        def call(cell: Any, *args: Any, **kwargs: Any) -> Any:
            name = self._modules.get(id(cell))
            outer = self._stack[-1][0] if self._stack else ""
            is_loss = isinstance(cell, mindspore.nn.LossBase) or (
                bool(self._stack) and self._stack[-1][1]
            )
            self._stack.append((outer if name is None else name, is_loss))
            try:
                return original(cell, *args, **kwargs)
            finally:
                self._stack.pop()

        return call

    def last_bad(self) -> int | None:
        """The last operation of the forward pass that gave something bad."""
        return self._last_bad

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        inputs = tuple(t for t in _flat(args) if is_tensor(t) and is_floating(t))
        forward = self.is_forward
        before = [self._status(tensor) for tensor in inputs]
        if forward:
            for tensor in inputs:
                self._hook(tensor)
        output = func(*args, **(kwargs or {}))
        outputs = tuple(t for t in _flat((output,)) if is_tensor(t) and is_floating(t))
        number = len(self._seen)
        module = self._stack[-1][0] if self._stack else ""
        where = user_line(2, _REPLAY) or self._where
        name = str(func.name)
        self._seen.append(_Seen(name, module, where, inputs, outputs))
        kinds = [kind_of_tensor(tensor) for tensor in outputs]
        kind = next((k for k in kinds if k), None)
        status, is_producer = classify(kind, [s for s, _ in before], _is_fill(args))
        for tensor, one in zip(outputs, kinds, strict=True):
            is_bad = one is not None
            found = (status if is_bad else Status.FINITE, number if is_bad else None)
            self._statuses[id(tensor)] = (tensor, *found)
            if is_bad and (address := _address(tensor)):
                self._by_address[address] = found
        if status is not Status.FINITE:
            self._note(number, name, status, is_producer, str(kind), before, inputs)
        return output

    def _note(
        self,
        number: int,
        name: str,
        status: Status,
        is_producer: bool,
        kind: str,
        before: list[tuple[Status, int | None]],
        inputs: tuple[Any, ...],
    ) -> None:
        seen = self._seen[number]
        is_loss = bool(self._stack) and self._stack[-1][1]
        in_network = bool(self._stack) and not is_loss
        forward = Phase.FORWARD if in_network else Phase.LOSS
        phase = forward if self.is_forward else Phase.BACKWARD
        if phase is not Phase.BACKWARD:
            self._last_bad = number
        sources = tuple(made for _, made in before if made is not None)
        measured = tuple(facts(t) for t in inputs) if is_producer else ()
        self.operations.append(
            Operation(
                number,
                phase,
                seen.module,
                name,
                seen.where,
                status,
                is_producer,
                kind,
                sources,
                measured,
            )
        )

    def _hook(self, tensor: Any) -> None:
        if id(tensor) in self._hooked or isinstance(tensor, mindspore.Parameter):
            return
        self._hooked.add(id(tensor))

        def keep(gradient: Any) -> None:
            self._gradients.append((tensor, gradient))

        # MindSpore refuses a hook where no gradient will arrive, and offers no way to ask before.
        with contextlib.suppress(RuntimeError):
            tensor.register_hook(keep)

    def _status(self, tensor: Any) -> tuple[Status, int | None]:
        known = self._statuses.get(id(tensor))
        if known is not None and known[0] is tensor:
            return known[1], known[2]
        kind = kind_of_tensor(tensor)
        found: tuple[Status, int | None] = (Status.FINITE, None)
        if kind is not None:
            found = self._by_address.get(_address(tensor)) or self._unseen(kind)
        self._statuses[id(tensor)] = (tensor, *found)
        return found

    def _unseen(self, kind: str) -> tuple[Status, int | None]:
        """Of a bad tensor that no seen operator made.

        Arguments and weights were found finite before the replay, so that it comes from code that
        is compiled of its own, as `DynamicLossScaler.scale`, which got the last bad value.
        """
        if kind == "-inf":
            return Status.MEANT, None
        return Status.BAD, self._last_bad if self.is_forward else None

    def backward_origin(
        self, step: int, masked: tuple[str, ...], paths: Mapping[int, str]
    ) -> Origin | None:
        """The operator whose backward made the first bad gradient; None where all are finite."""
        for tensor, gradient in self._gradients:
            kind = kind_of_tensor(gradient)
            if kind is None:
                continue
            consumers = [s for s in self._seen if any(i is tensor for i in s.inputs)]
            if not consumers:
                continue
            with_poles = [s for s in consumers if s.name in _WITH_POLES]
            seen = (with_poles or consumers[::-1])[0]
            tensors = (*seen.inputs, *seen.outputs)
            made = [n for t in tensors if (n := self._status(t)[1]) is not None]
            earlier = trace_back(self.operations, made, step) if made else None
            if earlier is not None:
                note = f"{seen.name} ({seen.where}) got it; the loss does not show it, gradients do"
                return dataclasses.replace(earlier, note=note)
            return self._backward(step, seen, kind, masked)
        return None

    def _backward(self, step: int, seen: _Seen, kind: str, masked: tuple[str, ...]) -> Origin:
        bad = {id(t) for t, g in self._gradients if kind_of_tensor(g)}
        path = [s.module for s in self._seen[::-1] if any(id(t) in bad for t in s.inputs)]
        return Origin(
            step=step,
            phase=Phase.BACKWARD,
            module=seen.module,
            operator=f"{seen.name} (backward)",
            kind=kind,
            where=seen.where,
            inputs=tuple(facts(t) for t in seen.inputs),
            propagation=tuple(dict.fromkeys(m for m in path if m != seen.module)),
            masked=masked,
        )


_REPLAY = __file__.replace("mindspore_observer", "mindspore_replay")

"""A dispatch mode that notes every aten operator which touches a value that is not finite."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch  # noqa: TID253  # this module is loaded only for a torch training
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: TID253  # the same

from isograd.recording.torch_recorder import as_array
from isograd.watch.frames import user_line
from isograd.watch.origin import (
    Operation,
    Phase,
    Status,
    TensorFacts,
    classify,
    facts_of,
    kind_of,
)
from isograd.watch.torch_calls import floating

#: Operators that are noted at most: the first ones hold the origin.
_MOST_NOTED = 5000


def kind_of_tensor(tensor: torch.Tensor) -> str | None:
    """`nan`, `inf` or `-inf`, or None where all elements are finite."""
    plain = tensor.detach()
    if plain.layout is not torch.strided:
        plain = plain.coalesce().values() if plain.is_sparse else plain.to_dense()
    # The sum is finite only where every element is; a sum that overflows is asked again.
    if bool(torch.isfinite(plain.sum())) or bool(torch.isfinite(plain).all()):
        return None
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    nans = int(torch.isnan(plain).sum())
    has_positive = bool((plain == float("inf")).any())
    return kind_of(nans, has_positive, bool((plain == float("-inf")).any()))


def facts(tensor: torch.Tensor) -> TensorFacts:
    """What a tensor holds, for the report."""
    array, dtype = as_array(tensor)
    if array is None:
        return TensorFacts(tuple(tensor.shape), dtype, float("nan"), float("nan"), 0, 0)
    return facts_of(array, dtype, dtype == "bfloat16")


def is_fill(args: Any, kwargs: Any) -> bool:
    """Whether an infinity stands among the arguments as a number."""
    for value in (*args, *(kwargs or {}).values()):
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return True
        if isinstance(value, torch.Tensor) and value.ndim == 0 and value.is_floating_point():
            if bool(torch.isinf(value)):
                return True
    return False


def name_of(function: Any) -> str:
    """An operator's name without its overload: `log` for `aten.log.default`."""
    return str(function).split(".")[1] if str(function).count(".") else str(function)


class Observer(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's mode has no types
    """Notes operators by module, line and status; statuses go with the tensors."""

    def __init__(self, names: dict[int, str], where: str) -> None:
        """names: of modules by identity; where: the line of the network's call."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self._names = names
        self._where = where
        self._stack: list[str] = []
        self._count = 0
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, Status, int | None]] = {}
        self._by_storage: dict[int, int] = {}
        #: Of each autograd node by its sequence number: module and line of the forward operator.
        self._forward: dict[int, tuple[str, str]] = {}

    @contextlib.contextmanager
    def modules(self) -> Iterator[None]:
        """Know which module runs, inside of this context."""
        original = torch.nn.Module.__call__
        observer = self

        def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            name = observer._names.get(id(module))
            if name is not None:
                observer._stack.append(name)
            try:
                return original(module, *args, **kwargs)
            finally:
                if name is not None:
                    observer._stack.pop()

        torch.nn.Module.__call__ = call  # type: ignore[method-assign]  # put back below
        try:
            yield
        finally:
            torch.nn.Module.__call__ = original  # type: ignore[method-assign]  # as above

    def makers(self, tensors: list[torch.Tensor]) -> list[int]:
        """The operations that made those of the tensors that are bad."""
        found = []
        for tensor in tensors:
            if kind_of_tensor(tensor) is not None:
                _, maker = self._status(tensor)
                if maker is not None:
                    found.append(maker)
        return found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        node: Any = torch._C._current_autograd_node()
        inputs = floating((args, kwargs))
        before = [self._status(tensor) for tensor in inputs]
        given = [facts(t) for t in inputs] if func._schema.is_mutable and inputs else None
        if node is None:
            self._remember()
        output = func(*args, **kwargs)
        self._count += 1
        outputs = floating(output)
        kinds = [kind_of_tensor(tensor) for tensor in outputs]
        kind = next((k for k in kinds if k), None)
        statuses = [status for status, _ in before]
        status, is_producer = classify(kind, statuses, is_fill(args, kwargs))
        for tensor, one in zip(outputs, kinds, strict=True):
            self._set(tensor, status if one else Status.FINITE, one is not None)
        if status is not Status.FINITE and len(self.operations) < _MOST_NOTED:
            sources = tuple(number for _, number in before if number is not None)
            measured = (given or [facts(t) for t in inputs]) if is_producer else []
            self._note(func, node, status, is_producer, str(kind), sources, measured)
        return output

    def _note(
        self,
        func: Any,
        node: Any,
        status: Status,
        is_producer: bool,
        kind: str,
        sources: tuple[int, ...],
        inputs: list[TensorFacts],
    ) -> None:
        module, where = self._place(node)
        operator = name_of(func) if node is None else node.name()
        note = "" if node is None else f"aten operator {name_of(func)} of {node.name()}"
        self.operations.append(
            Operation(
                self._count,
                Phase.FORWARD if node is None else Phase.BACKWARD,
                module,
                operator,
                where,
                status,
                is_producer,
                kind,
                sources,
                tuple(inputs),
                note,
            )
        )

    def _place(self, node: Any) -> tuple[str, str]:
        if node is not None:
            return self._forward.get(node._sequence_nr(), ("", self._where))
        module = self._stack[-1] if self._stack else ""
        return module, user_line(4, _REPLAY) or self._where

    def _remember(self) -> None:
        """The node of the operator that runs now was made just before it was dispatched."""
        number = torch._C._autograd._get_sequence_nr() - 1
        if torch.is_grad_enabled() and number not in self._forward:
            module = self._stack[-1] if self._stack else ""
            self._forward[number] = (module, user_line(3, _REPLAY) or self._where)

    def _status(self, tensor: torch.Tensor) -> tuple[Status, int | None]:
        known = self._known.get(id(tensor))
        if known is not None and known[0]() is tensor:
            return known[2], known[3]
        kind = kind_of_tensor(tensor)
        if kind is None:
            found: tuple[Status, int | None] = (Status.FINITE, None)
        else:
            maker = self._by_storage.get(_storage(tensor))
            if maker is not None:
                found = (self._status_of_operation(maker), maker)
            else:
                found = (Status.MEANT if kind == "-inf" else Status.BAD, None)
        self._known[id(tensor)] = (weakref.ref(tensor), 0, *found)
        return found

    def _status_of_operation(self, number: int) -> Status:
        for operation in reversed(self.operations):
            if operation.number == number:
                return operation.status
        return Status.BAD

    def _set(self, tensor: torch.Tensor, status: Status, is_bad: bool) -> None:
        storage = _storage(tensor)
        if storage in self._by_storage or is_bad:
            # An operator that works in place changes what views of the same storage hold.
            stale = [
                key
                for key, (reference, *_) in self._known.items()
                if (other := reference()) is not None and _storage(other) == storage
            ]
            for key in stale:
                del self._known[key]
        if is_bad:
            self._by_storage[storage] = self._count
        maker = self._count if is_bad else None
        self._known[id(tensor)] = (weakref.ref(tensor), 0, status, maker)


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(tensor)


_REPLAY = __file__.replace("torch_observer", "torch_replay")

"""The memory of tensors: torch's storages, to be read, and copies with memory of their own."""

from __future__ import annotations

import functools
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253


class Storage:
    """The numbers of a tensor, one after the other; a view of MindSpore's has memory of its own.

    What is written here would not reach the tensor: only questions are answered.
    """

    def __init__(self, tensor: Any, is_bytes: bool = False) -> None:
        self._tensor, self._is_bytes = tensor, is_bytes

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers."""
        return self._tensor.dtype

    def data_ptr(self) -> int:
        """The address."""
        return int(self._tensor.data_ptr())

    def nbytes(self) -> int:
        """The size in bytes."""
        return int(self._tensor.nbytes)

    def element_size(self) -> int:
        """The bytes of a number."""
        return 1 if self._is_bytes else int(self._tensor.itemsize)

    def size(self) -> int:
        """How many numbers there are, or bytes of an untyped storage."""
        return self.nbytes() // self.element_size()

    def __len__(self) -> int:
        return self.size()

    def tolist(self) -> list[Any]:
        """The numbers, or the bytes of an untyped storage."""
        values = self._tensor.asnumpy()
        return list(values.tobytes()) if self._is_bytes else values.reshape(-1).tolist()


def storage(input: Any) -> Storage:
    """`Tensor.storage`: the numbers of a tensor."""
    return Storage(input)


def untyped_storage(input: Any) -> Storage:
    """`Tensor.untyped_storage`: the bytes of a tensor."""
    return Storage(input, is_bytes=True)


def copies_own_their_memory() -> None:
    """Let `copy.deepcopy` copy what tensors hold; MindSpore's copies share the memory."""
    for kind in (ms.Tensor, ms.Parameter):
        if not hasattr(kind.__deepcopy__, "__wrapped__"):
            kind.__deepcopy__ = _apart(kind.__deepcopy__)


def _apart(method: Any) -> Any:
    """A method that copies a tensor, with memory of its own for the copy."""

    def copied(self: Any, memo: Any) -> Any:
        made = method(self, memo)
        if self.has_init or not self.init_finished:  # its values are not made yet
            return made
        values = ops.stop_gradient(ms.Tensor(self)).copy()
        if isinstance(self, ms.Parameter):
            made.set_data(values)
        else:
            made.assign_value(values)
        return made

    return functools.wraps(method)(copied)

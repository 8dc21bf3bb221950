"""torch's zip format (since 1.6): one pickle that names storages, and one member for each."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from isograd.checkpoints import safe_pickle
from isograd.checkpoints.base import IndexedSource, RawTensor, TensorInfo, size_in_bytes
from isograd.checkpoints.dtypes import holder, item_size_bytes
from isograd.checkpoints.torch_values import (
    FUNCTIONS,
    MOST_EXPANDED_BYTES,
    VALUES,
    StoredTensor,
    flattened,
    storage_of,
)
from isograd.checkpoints.zip_map import ZipMap
from isograd.tensors import Array

MAX_PICKLE_BYTES = 512 * 1024 * 1024
#: How often the tensors of a file may read its storages, by overlapping or by strides of 0.
MOST_REPEATS = 8
UNSAFE_ADVICE = (
    "isograd runs no code of a file; load it where it was written and save its state_dict() only."
)


def advice_for(error: ValueError) -> str:
    """What to do about a pickle: another advice where it asks for code than where it is damaged."""
    if isinstance(error, safe_pickle.RefusedPickle):
        return UNSAFE_ADVICE
    return "Copy it again, or name a file that holds tensors."


class TorchSource(IndexedSource):
    """What both formats of torch share: tensors as places in storages."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._tensors: dict[str, StoredTensor] = {}
        self._metadata: dict[str, str] = {}

    @property
    def metadata(self) -> Mapping[str, str]:
        return self._metadata

    def register(self, root: object) -> None:
        """Fill the table from the unpickled object; ValueError where it holds nothing of use."""
        found = flattened(root)
        self._tensors = dict(found.tensors)
        self._metadata = dict(found.others)
        if found.wrapper:
            self._metadata = {"wrapper": found.wrapper, **found.others}
        if not self._tensors:
            raise ValueError("it holds no tensor")
        first: dict[tuple[object, ...], str] = {}
        repeated = 0
        for name, tensor in self._tensors.items():
            size = size_in_bytes(tensor.dtype, tensor.shape)
            place = (tensor.storage.key, tensor.dtype, tensor.offset, tensor.shape, tensor.strides)
            tied_to = first.setdefault(place, name) if size else name
            repeated += size if tied_to == name else 0
            self.add(
                TensorInfo(
                    name,
                    tensor.dtype,
                    tensor.shape,
                    size,
                    tensor.trainable,
                    tied_to=None if tied_to == name else tied_to,
                    part=found.parts.get(name, ""),
                )
            )
        storages = {t.storage.key: t.storage.size_bytes for t in self._tensors.values()}
        if repeated > MOST_EXPANDED_BYTES + MOST_REPEATS * sum(storages.values()):
            raise ValueError(f"its tensors announce {repeated:,} bytes, far more than it holds")

    def taken(self, name: str, storage: memoryview) -> RawTensor:
        """A tensor out of its storage's bytes; a view where it lies there in C order."""
        tensor = self._tensors[name]
        item = item_size_bytes(tensor.dtype)
        count = int(np.prod(tensor.shape, dtype=np.int64))
        if count == 0:
            return RawTensor(np.zeros(tensor.shape, holder(tensor.dtype)), tensor.dtype)
        last = tensor.offset + sum(
            (n - 1) * step for n, step in zip(tensor.shape, tensor.strides, strict=True)
        )
        if (last + 1) * item > len(storage):
            raise self.refusal(f"holds less of {name!r} than its pickle announces")
        part: Array = np.frombuffer(storage[tensor.offset * item : (last + 1) * item], np.uint8)
        part = part.view(holder(tensor.dtype))
        if tensor.is_contiguous:
            return RawTensor(part.reshape(tensor.shape), tensor.dtype)
        strided = np.lib.stride_tricks.as_strided(
            part, tensor.shape, tuple(step * item for step in tensor.strides), writeable=False
        )
        return RawTensor(strided, tensor.dtype)

    @abc.abstractmethod
    def storage(self, tensor: StoredTensor) -> memoryview:
        """The bytes of a tensor's storage."""

    def stored(self, name: str) -> RawTensor:
        self.info(name)
        return self.taken(name, self.storage(self._tensors[name]))

    def raw(self, name: str) -> RawTensor:
        found = self.stored(name)
        bits = np.ascontiguousarray(found.bits).reshape(found.bits.shape)
        return RawTensor(bits if bits.flags.aligned else bits.copy(), found.dtype)


class TorchZipFile(TorchSource):
    """A checkpoint in the zip format; storages are views of the map where they are stored."""

    kind = "torch (zip)"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._zip = ZipMap(path)
        pickles = [n for n in self._zip.names() if n == "data.pkl" or n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise self.refusal("holds several pickles")
        if any(name.endswith("constants.pkl") for name in self._zip.names()):
            raise self.refusal("is a TorchScript archive, which carries code", UNSAFE_ADVICE)
        self._folder = pickles[0].removesuffix("data.pkl")
        self._check_byte_order()
        stream = self._zip.stream(pickles[0], MAX_PICKLE_BYTES)
        try:
            self.register(safe_pickle.load(stream, FUNCTIONS, VALUES, storage_of))
        except ValueError as error:
            raise self.refusal(str(error), advice_for(error)) from error
        for tensor in self._tensors.values():
            member = self._member(tensor)
            if self._zip.size_bytes(member) != tensor.storage.size_bytes:
                raise self.refusal(f"member {member!r} has a size that the pickle contradicts")
            if not self._zip.is_stored(member):
                raise self.refusal(f"member {member!r} is compressed, as torch never writes it")

    def storage(self, tensor: StoredTensor) -> memoryview:
        return self._zip.member(self._member(tensor))

    def forget(self) -> None:
        self._zip.forget()

    def verify(self) -> bool:
        self._zip.verify()
        return True

    def _member(self, tensor: StoredTensor) -> str:
        return f"{self._folder}data/{tensor.storage.key}"

    def _check_byte_order(self) -> None:
        member = f"{self._folder}byteorder"
        if member in self._zip.names() and bytes(self._zip.member(member, 16)) != b"little":
            raise self.refusal("was written on a machine of another byte order")

"""The pickle of a torch checkpoint, written by hand: an OrderedDict of names and tensors.

It uses only what `torch.load(weights_only=True)` allows.  Source: torch/_weights_only_unpickler.py
of torch 2.13.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence

from isograd.checkpoints.dtypes import item_size_bytes

_STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}

#: Name, dtype, shape, key of the storage, bytes of the storage.
Described = tuple[str, str, tuple[int, ...], str, int]


def checkpoint_pickle(tensors: Sequence[Described]) -> bytes:
    """The pickle of these tensors, contiguous and at the start of their storages."""
    parts = [pickle.PROTO, b"\x02", _global("collections", "OrderedDict"), b")R("]
    for name, dtype, shape, key, size_bytes in tensors:
        parts += [_text(name), _tensor(dtype, shape, key, size_bytes)]
    parts.append(b"u.")
    return b"".join(parts)


def _tensor(dtype: str, shape: tuple[int, ...], key: str, size_bytes: int) -> bytes:
    is_typed = dtype in _STORAGES
    function = "_rebuild_tensor_v2" if is_typed else "_rebuild_tensor_v3"
    kind = (
        _global("torch", _STORAGES[dtype])
        if is_typed
        else _global("torch.storage", "UntypedStorage")
    )
    count = size_bytes // item_size_bytes(dtype) if is_typed else size_bytes
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    storage = b"(" + _text("storage") + kind + _text(key) + _text("cpu") + _number(count) + b"tQ"
    arguments = storage + _number(0) + _tuple(shape) + _tuple(strides[::-1]) + b"\x89"
    hooks = _global("collections", "OrderedDict") + b")R"
    tail = b"" if is_typed else _global("torch", dtype)
    return _global("torch._utils", function) + b"(" + arguments + hooks + tail + b"tR"


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def _text(text: str) -> bytes:
    encoded = text.encode("utf-8", errors="surrogatepass")
    return b"X" + len(encoded).to_bytes(4, "little") + encoded


def _number(value: int) -> bytes:
    return pickle.dumps(value, protocol=2)[2:-1]


def _tuple(numbers: Sequence[int]) -> bytes:
    return b"(" + b"".join(_number(number) for number in numbers) + b"t"

"""Values on the pipe between isograd and its workers: JSON and raw tensor bytes, never pickle.

A message is ``length of head (8 bytes, little endian) · head (JSON) · tensor bytes``.  The head
holds the value, with tensors by number, and the dtype, shape and size of each tensor.  Only the
frozen dataclasses listed here cross the pipe.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from typing import Any, BinaryIO

import numpy as np

from isograd.diagnose.decide import Diagnosis, NamedCause, Tried
from isograd.diagnose.hypothesis import Surroundings
from isograd.edits import SourceEdit
from isograd.frameworks.base import (
    Arithmetic,
    CallInfo,
    DropoutSite,
    FunctionCall,
    FunctionSite,
    MaskDraw,
    ModuleInfo,
    Operand,
    ParameterInfo,
    Place,
    PortFix,
    ReplayRequest,
    Shift,
    SideSpec,
    Structure,
    Trial,
)
from isograd.noise.envelope import Errors
from isograd.tensors import TensorValue
from isograd.worker.requests import (
    DiagnosisRequest,
    PassRequest,
    StepRequest,
    SubjectRequest,
    UnitMeasured,
    UnitRequest,
)

_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Arithmetic,
        CallInfo,
        Diagnosis,
        DiagnosisRequest,
        DropoutSite,
        Errors,
        FunctionCall,
        FunctionSite,
        MaskDraw,
        ModuleInfo,
        NamedCause,
        Operand,
        ParameterInfo,
        PassRequest,
        Place,
        PortFix,
        SourceEdit,
        ReplayRequest,
        Shift,
        SideSpec,
        StepRequest,
        Structure,
        SubjectRequest,
        Surroundings,
        Trial,
        Tried,
        UnitMeasured,
        UnitRequest,
    )
}
_HEAD = struct.Struct("<Q")
_LARGEST_HEAD_BYTES = 1 << 30


def write_message(stream: BinaryIO, value: Any) -> None:
    """Write one message and flush."""
    tensors: list[TensorValue] = []
    body = _encode(value, tensors)
    arrays = [np.ascontiguousarray(t.values) for t in tensors]
    table = [
        [t.dtype, a.dtype.str, list(t.values.shape), a.nbytes]
        for t, a in zip(tensors, arrays, strict=True)
    ]
    head = json.dumps({"value": body, "tensors": table}).encode()
    stream.write(_HEAD.pack(len(head)))
    stream.write(head)
    for array in arrays:
        if array.nbytes:
            stream.write(array.reshape(-1).data.cast("B"))
    stream.flush()


def read_message(stream: BinaryIO) -> Any:
    """Read one message; `EOFError` where the other end has closed."""
    (length,) = _HEAD.unpack(_exactly(stream, _HEAD.size))
    if length > _LARGEST_HEAD_BYTES:
        raise EOFError("the stream does not hold a message")
    head = json.loads(bytes(_exactly(stream, length)))
    tensors = []
    for dtype, stored, shape, size in head["tensors"]:
        array = _exactly(stream, size).view(np.dtype(stored)).reshape(shape)
        tensors.append(TensorValue(array, dtype))
    return _decode(head["value"], tensors)


def _exactly(stream: BinaryIO, size: int) -> Any:
    # Not a bytearray, which fills with zeros what is read over next.
    buffer = np.empty(size, np.uint8)
    view = buffer.data
    done = 0
    while done < size:
        count = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError("the other process has closed the pipe")
        done += count
    return buffer


def _encode(value: Any, tensors: list[TensorValue]) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return getattr(value, "value", value)
    if isinstance(value, TensorValue):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_encode(part, tensors) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, tensors), _encode(v, tensors)] for k, v in value.items()]}
    if dataclasses.is_dataclass(value) and _TYPES.get(type(value).__name__) is type(value):
        fields = {
            f.name: _encode(getattr(value, f.name), tensors) for f in dataclasses.fields(value)
        }
        return {"object": type(value).__name__, "fields": fields}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} does not cross the pipe")


def _decode(value: Any, tensors: list[TensorValue]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "tuple" in value:
        return tuple(_decode(part, tensors) for part in value["tuple"])
    if "list" in value:
        return [_decode(part, tensors) for part in value["list"]]
    if "dict" in value:
        return {_decode(k, tensors): _decode(v, tensors) for k, v in value["dict"]}
    fields = {name: _decode(part, tensors) for name, part in value["fields"].items()}
    return _TYPES[value["object"]](**fields)

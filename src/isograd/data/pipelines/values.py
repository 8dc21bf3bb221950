"""What a transform takes and gives, as an array and the container that it was in.

Containers: "pil:MODE" (a Pillow image), "tensor" (torch), "numpy", "bytes", "text", "number" (of
Python), "list".  MindSpore's transforms take and give numpy.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from isograd.tensors import TensorValue, tensor_value

#: Fields of one sample by name.
Row = dict[str, Any]


def container_of(value: Any) -> str:
    """The name of the container that a value is in; "other" for what has none."""
    if isinstance(value, np.ndarray):
        return "numpy"
    if isinstance(value, (bytes, bytearray)):
        return "bytes"
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, int, float, np.generic)):
        return "number"
    if _is_pillow(value):
        return f"pil:{value.mode}"
    if _is_torch(value):
        return "tensor"
    if hasattr(value, "asnumpy"):
        return "numpy"
    if isinstance(value, (list, tuple)) and as_array(value) is not None:
        return "list"
    return "other"


def _is_pillow(value: Any) -> bool:
    image = sys.modules.get("PIL.Image")
    return image is not None and isinstance(value, image.Image)


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of a value; None where it holds something else.

    Returns the shape of the value in its dtype; float32 for bfloat16, (bytes,) uint8 for bytes.
    """
    if _is_torch(value):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        value = value.numpy()
    elif hasattr(value, "asnumpy"):
        value = value.asnumpy()
    elif isinstance(value, (bytes, bytearray)):
        return np.frombuffer(bytes(value), np.uint8)
    elif isinstance(value, str):
        return None
    elif _is_pillow(value) and value.mode == "P":
        value = value.copy()
    try:
        found = np.asarray(value)
    except (ValueError, TypeError):
        return None
    return found if found.dtype.kind in "biufc" else None


def in_container(values: np.ndarray[Any, Any], container: str) -> Any:
    """The value that a transform takes, of an array and the container's name.

    values: any shape and dtype that the container can hold.
    """
    if container.startswith("pil:"):
        from PIL import Image

        return Image.fromarray(np.ascontiguousarray(values), container.partition(":")[2])
    if container == "tensor":
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(values).copy())
    if container == "bytes":
        return values.astype(np.uint8).tobytes()
    if container == "number":
        return values.item()
    if container == "list":
        return values.tolist()
    return values


def wire(value: Any) -> dict[str, Any]:
    """A value for the pipe: its container, and its numbers or its text."""
    container = container_of(value)
    if container == "text":
        return {"container": container, "text": value}
    array = as_array(value)
    if array is None:
        if isinstance(value, np.ndarray) and value.dtype.kind in "US" and value.ndim == 0:
            item = value.item()
            text = item.decode("utf-8", errors="replace") if isinstance(item, bytes) else item
            return {"container": "text", "text": text}
        return {"container": "other", "text": f"{type(value).__name__}"}
    return {"container": container, "array": tensor_value(array)}


def unwire(found: Mapping[str, Any]) -> Any:
    """What `wire` took, again."""
    if "array" in found:
        value = found["array"]
        array = value.values if isinstance(value, TensorValue) else value
        return in_container(array, found["container"])
    return found["text"]


def row_of(value: Any, names: tuple[str, ...] = ()) -> Row:
    """The fields of a sample or batch: by name of a mapping, else by position."""
    if isinstance(value, Mapping):
        return _flat(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return _flat(value._asdict())
    if isinstance(value, (tuple, list)) and not (isinstance(value, list) and _is_plain(value)):
        return _numbered(value, names)
    return {names[0] if names else "0": value}


def _is_plain(value: list[Any]) -> bool:
    """Whether a list holds numbers alone: then it is one field."""
    return bool(value) and all(isinstance(part, (bool, int, float, np.generic)) for part in value)


def _numbered(value: Any, names: tuple[str, ...]) -> Row:
    found: Row = {}
    for number, part in enumerate(value):
        name = names[number] if number < len(names) else str(number)
        if isinstance(part, Mapping):
            found.update({f"{name}.{key}": inner for key, inner in _flat(part).items()})
        else:
            found[name] = part
    return found


def _flat(value: Mapping[Any, Any]) -> Row:
    found: Row = {}
    for key, part in value.items():
        if isinstance(part, Mapping):
            found.update({f"{key}.{inner}": deep for inner, deep in _flat(part).items()})
        else:
            found[str(key)] = part
    return found


def unbatched(row: Row) -> list[Row] | None:
    """The samples of a batch; None where its fields have no common first axis."""
    sizes = set()
    for value in row.values():
        if isinstance(value, (list, tuple)):
            sizes.add(len(value))
            continue
        array = as_array(value)
        if array is None and isinstance(value, np.ndarray) and value.ndim:
            array = value
        if array is None or not array.ndim:
            return None
        sizes.add(len(array))
    if len(sizes) != 1:
        return None
    (size,) = sizes
    return [{name: _part(value, n) for name, value in row.items()} for n in range(size)]


def _part(value: Any, number: int) -> Any:
    part = value[number]
    return np.asarray(part) if isinstance(part, np.generic) else part

"""Shapes and dtypes of tensors where a program writes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from isograd.init.values import Api, Known, Parts, Tensor, Value

_DTYPES = {
    "float": "float32", "float32": "float32", "float64": "float64", "double": "float64",
    "half": "float16", "float16": "float16", "bfloat16": "bfloat16", "long": "int64",
    "int64": "int64", "int": "int32", "int32": "int32", "int16": "int16", "int8": "int8",
    "uint8": "uint8", "bool": "bool", "bool_": "bool",
}  # fmt: skip
_MOST_LISTED = 64


def made(fill: str, positional: list[Value], keywords: dict[str, Value], line: int) -> Tensor:
    """The tensor that a function of apis.toml makes; code None where it is a new one."""
    if fill == "same":
        return _converted(positional, keywords, line)
    low: float | None = None
    high: float | None = None
    rest = list(positional)
    if fill == "integers":
        bounds = (
            [*rest[:2]] if len(rest) > 1 and not _is_shape(rest[1]) else [Known("0", 0), *rest[:1]]
        )
        rest = rest[2:] if len(rest) > 1 and not _is_shape(rest[1]) else rest[1:]
        bounds = [keywords.get("low", bounds[0]), keywords.get("high", bounds[-1])]
        numbers = [b.value for b in bounds if isinstance(b, Known)]
        if len(numbers) == 2 and all(isinstance(n, int) for n in numbers):
            low, high = numbers
    shape = _shape(keywords.get("size", keywords.get("shape")), rest)
    usual = "int64" if fill == "integers" else "float32"
    dtype = dtype_of(keywords.get("dtype")) or usual
    if "int" in dtype and fill in ("normal", "uniform"):
        fill = "integers"
    return Tensor(None, shape, dtype, fill, low, high, line=line)


def method(
    owner: Tensor, name: str, positional: list[Value], keywords: dict[str, Value]
) -> Tensor | None:
    """What a method makes of a tensor: another dtype, another shape, itself; None if unknown."""
    if name in ("to", "type", "astype"):
        dtype = next((d for v in [*positional, *keywords.values()] if (d := dtype_of(v))), None)
        return _cast(owner, dtype) if dtype else owner
    if name in ("float", "double", "half", "long", "int", "bool", "bfloat16") and not positional:
        return _cast(owner, _DTYPES[name])
    if name in ("view", "reshape"):
        shape = _shape(None, positional)
        if shape is None or owner.shape is None or any(n < 0 for n in shape):
            return None
        return dataclasses.replace(owner, shape=shape, code=None)
    if name == "unsqueeze" and len(positional) == 1 and isinstance(positional[0], Known):
        return _unsqueezed(owner, positional[0].value)
    if name in ("cuda", "cpu", "contiguous", "detach", "clone", "numpy", "asnumpy", "npu", "copy"):
        return owner
    return None


def batch(item: Value, size: int) -> Tensor:
    """A batch of samples."""
    if isinstance(item, Tensor):
        shape = None if item.shape is None else (size, *item.shape)
        return dataclasses.replace(item, code=None, shape=shape, is_batch=True)
    if isinstance(item, Known) and isinstance(item.value, (bool, int, float)):
        is_float = isinstance(item.value, float)
        dtype, fill = ("float32", "normal") if is_float else ("int64", "integers")
        return Tensor(None, (size,), dtype, fill, is_batch=True)
    return Tensor(is_batch=True)


def sample(value: Value) -> Value:
    """One sample of a tensor of samples."""
    if isinstance(value, Tensor) and value.shape:
        return dataclasses.replace(value, code=None, shape=value.shape[1:])
    return value


def dtype_of(value: Value | None) -> str | None:
    """A dtype as isograd spells it."""
    if isinstance(value, Api):
        return _DTYPES.get(value.name.rpartition(".")[2])
    if isinstance(value, Known) and isinstance(value.value, str):
        return _DTYPES.get(value.value)
    if value is not None and value.code in ("float", "int", "bool"):
        return {"float": "float64", "int": "int64", "bool": "bool"}[value.code]
    return None


def _cast(owner: Tensor, dtype: str) -> Tensor:
    fill = owner.fill
    if "int" in dtype and fill in ("normal", "uniform"):
        fill = "integers"
    return dataclasses.replace(owner, dtype=dtype, fill=fill, code=None)


def _unsqueezed(owner: Tensor, axis: Any) -> Tensor | None:
    if owner.shape is None or not isinstance(axis, int):
        return None
    place = axis if axis >= 0 else len(owner.shape) + 1 + axis
    shape = (*owner.shape[:place], 1, *owner.shape[place:])
    return dataclasses.replace(owner, code=None, shape=shape)


def _converted(positional: list[Value], keywords: dict[str, Value], line: int) -> Tensor:
    """A tensor made of an array or of nested lists."""
    given = positional[0] if positional else keywords.get("input_data", Value())
    dtype = next((d for v in [*positional[1:], keywords.get("dtype")] if (d := dtype_of(v))), None)
    if isinstance(given, Tensor):
        return _cast(given, dtype) if dtype else given
    if isinstance(given, Known):
        shape = _nested_shape(given.value)
        is_float = "." in repr(given.value)
        usual = "float32" if is_float else "int64"
        fill = "normal" if is_float else "integers"
        return Tensor(None, shape, dtype or usual, fill, line=line)
    return Tensor(None, None, dtype or "float32", line=line)


def _nested_shape(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, (list, tuple)):
        inner = _nested_shape(value[0]) if value else ()
        return None if inner is None else (len(value), *inner)
    return () if isinstance(value, (bool, int, float)) else None


def _is_shape(value: Value) -> bool:
    return isinstance(value, Parts) or (
        isinstance(value, Known) and isinstance(value.value, (tuple, list))
    )


def _shape(named: Value | None, positional: list[Value]) -> tuple[int, ...] | None:
    """A shape that is given as one tuple, or number by number."""
    given = named if named is not None else (positional[0] if positional else None)
    if isinstance(given, Known) and isinstance(given.value, (tuple, list)):
        numbers: list[Any] = list(given.value)
    elif isinstance(given, Parts):
        numbers = [part.value if isinstance(part, Known) else None for part in given.items]
    else:
        parts = [named] if named is not None else positional
        numbers = [part.value for part in parts if isinstance(part, Known)]
        if len(numbers) != len(parts):
            numbers = [n for n in numbers if isinstance(n, int)] if not named else [None]
            if len(numbers) != sum(1 for p in parts if not isinstance(p, Api)):
                return None
    if len(numbers) > _MOST_LISTED or not all(isinstance(n, int) for n in numbers):
        return None
    return tuple(numbers)

"""Dataclasses and named tuples that a compiled step makes, which no static graph can hold.

Where Python runs they are what they are.  While a graph is compiled a named tuple is a plain tuple,
and a dataclass a tuple of its class's name, its fields' names and their values: MindSpore 2.10
loses the gradient of an object that is made inside, and refuses a dictionary or None within what a
step returns beside its loss.  What comes out of a step is an object again.
"""

from __future__ import annotations

import functools
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253

_MARK = "isograd.record"
_DICTIONARY = "isograd.dictionary"
_NONE = "isograd.none"
#: The classes by their names, and how elements are read of objects of those that say it.
_CLASSES: dict[str, Any] = {}
_ELEMENTS: dict[str, Any] = {}


def record_class(kind: Any) -> Any:
    """Note a class of which a compiled step makes objects."""
    _CLASSES[kind.__name__] = kind
    if hasattr(kind, "__getitem__"):
        _ELEMENTS[kind.__name__] = kind.__getitem__
    return kind


class _Record(nn.Cell):  # type: ignore[misc]
    def __call__(self, name: str, fields: tuple[str, ...], *values: Any) -> Any:
        return _CLASSES[name](**dict(zip(fields, values, strict=True)))

    def construct(self, name: Any, fields: Any, *values: Any) -> Any:
        return (_MARK, name, fields, *values)


class _NamedTuple(nn.Cell):  # type: ignore[misc]
    def __call__(self, name: str, *values: Any) -> Any:
        return _CLASSES[name](*values)

    def construct(self, name: Any, *values: Any) -> Any:
        return values


class _Fields(nn.Cell):  # type: ignore[misc]
    def __call__(self, owner: Any) -> Any:
        return vars(owner)

    def construct(self, owner: Any) -> Any:
        return {owner[2][place]: owner[3 + place] for place in range(len(owner[2]))}


_RECORD, _NAMED_TUPLE, _FIELDS = _Record(), _NamedTuple(), _Fields()


def make_record(name: str, fields: tuple[str, ...], *values: Any) -> Any:
    """An object of a dataclass, by its fields."""
    return _RECORD(name, fields, *values)


def make_named_tuple(name: str, *values: Any) -> Any:
    """A named tuple of all its fields."""
    return _NAMED_TUPLE(name, *values)


def is_record(value: Any) -> bool:
    """Whether a value is a dataclass's object within a graph."""
    return (
        isinstance(value, tuple) and len(value) > 2 and isinstance(value[0], str)
        and value[0] == _MARK
    )  # fmt: skip


def field_of(owner: Any, name: str, place: int = -1) -> Any:
    """`owner.name`; place: where a named tuple has it."""
    if is_record(owner):
        for number in range(len(owner[2])):
            if owner[2][number] == name:
                return owner[3 + number]
    if place >= 0 and isinstance(owner, tuple):
        return owner[place]
    return getattr(owner, name)


def fields_of(owner: Any) -> Any:
    """`vars(owner)` of a dataclass's object."""
    return _FIELDS(owner)


def element_of(owner: Any, key: Any) -> Any:
    """`owner[key]` where a dataclass may say what that is."""
    if is_record(owner):
        return _ELEMENTS[owner[1]](owner, key)
    return owner[key]


def shown_records(value: Any) -> Any:
    """What a step returns beside its loss, without None and dictionaries within it.

    MindSpore 2.10 cannot differentiate a step that reads a dictionary twice and returns it.
    """
    if value is None:
        return _NONE
    if isinstance(value, tuple):
        made: tuple[Any, ...] = ()
        for part in value:
            made = (*made, shown_records(part))
        return made
    if isinstance(value, list):
        return [shown_records(part) for part in value]
    if isinstance(value, dict):
        return (_DICTIONARY, tuple(value.keys()), *shown_records(tuple(value.values())))
    return value


def _is_marked(value: Any, mark: str) -> bool:
    is_tuple = isinstance(value, tuple) and len(value) > 1
    return is_tuple and isinstance(value[0], str) and value[0] == mark


def _rebuilt(value: Any) -> Any:
    if isinstance(value, str):
        return None if value == _NONE else value
    if _is_marked(value, _MARK):
        return _CLASSES[value[1]](**dict(zip(value[2], map(_rebuilt, value[3:]), strict=True)))
    if _is_marked(value, _DICTIONARY):
        return dict(zip(value[1], map(_rebuilt, value[2:]), strict=True))
    if isinstance(value, (tuple, list)):
        return type(value)(map(_rebuilt, value))
    return value


def _taken_apart(value: Any) -> Any:
    if isinstance(value, (ms.Tensor, nn.Cell)):
        return value
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None and _CLASSES.get(type(value).__name__) is type(value):
        parts = [_taken_apart(getattr(value, name)) for name in fields]
        return (_MARK, type(value).__name__, tuple(fields), *parts)
    if isinstance(value, (tuple, list)) and not hasattr(value, "__ms_mutable__"):
        kind = tuple if hasattr(value, "_fields") else type(value)
        return kind([_taken_apart(part) for part in value])
    return value


def with_records(step: Any) -> Any:
    """A compiled step that takes and returns objects of the noted classes."""

    @functools.wraps(step)
    def call(*inputs: Any, **named: Any) -> Any:
        own = {name: _taken_apart(value) for name, value in named.items()}
        return _rebuilt(step(*map(_taken_apart, inputs), **own))

    return call

"""Attributes of layers that are set after the layers are made: `norm.eps = 1e-3`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from isograd.scan.values import ANY_MODULE, Made, Value


@dataclass(frozen=True)
class AttributeSet:
    """`owner.name = value`.

    owner: a class of torch; "" of what is a layer, and not known which; None of what is not known.
    is_number: False where the value is written out as none or a text.
    """

    owner: str | None
    name: str
    is_number: bool = True


def attribute_set(owner: Value, name: str, value: ast.expr | None) -> AttributeSet | None:
    """That an attribute is set, of a layer or of what may be one; None where it is of others."""
    if owner is not None and not isinstance(owner, Made):
        return None
    api = None if owner is None else owner.api
    if owner == ANY_MODULE or (api is not None and is_base(api)):
        api = ""
    is_number = not isinstance(getattr(value, "value", 0), (str, type(None)))
    return AttributeSet(api, name, is_number)


def is_base(api: str) -> bool:
    """Whether a class of torch is what several layers derive from, and private: `_BatchNorm`."""
    return api.rpartition(".")[2].startswith("_")

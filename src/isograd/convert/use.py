"""A place in a file that names an API of torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from isograd.scan.values import Value


@dataclass(frozen=True)
class Use:
    """A place that names an API of torch.

    node: the part of the dotted name that names it.  is_member: whether it is the method or the
    attribute of a value; is_sure: whether what the value is is known.
    """

    api: str
    node: ast.expr
    is_member: bool = False
    is_sure: bool = True
    owner: Value = None

"""What a person writes on the command line: builders and the inputs of their networks."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from isograd.errors import UsageError
from isograd.verify.case import TensorSpec

_BUILDER = re.compile(r"(?P<module>[\w.]+):(?P<name>[\w.]+)(?P<arguments>\(.*\))?", re.DOTALL)
_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "bool")
#: Integers of an input are drawn below this where nothing else is said.
_BELOW = 10


@dataclass(frozen=True)
class Builder:
    """A function or class that makes a network, with the arguments it is called with."""

    module: str
    name: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """As it is written on the command line."""
        given = ", ".join(f"{key}={value!r}" for key, value in self.arguments)
        return f"{self.module}:{self.name}" + (f"({given})" if given else "")


def parse_builder(text: str) -> Builder:
    """Read `package.module:name` or `package.module:name(k=v, …)`, whose values are literals.

    Raises UsageError where it is none.
    """
    found = _BUILDER.fullmatch(text.strip())
    if found is None or not _are_names(found["module"]) or not _are_names(found["name"]):
        raise UsageError(
            f"{text!r} is not a builder",
            "Write it as 'package.module:function', with arguments as "
            "'package.module:function(width=8)'.",
        )
    arguments: list[tuple[str, Any]] = []
    try:
        call = ast.parse(f"f{found['arguments'] or '()'}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("its arguments need names")
        for keyword in call.keywords:
            if keyword.arg is None:
                raise ValueError("its arguments need names")
            arguments.append((keyword.arg, ast.literal_eval(keyword.value)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        said = str(error) if "need names" in str(error) else "its arguments are no plain values"
        raise UsageError(
            f"{text!r} is not a builder: {said}",
            "Write numbers, texts, lists and the like, each as name=value.",
        ) from None
    return Builder(found["module"], found["name"], tuple(arguments))


def _are_names(dotted: str) -> bool:
    return all(part.isidentifier() for part in dotted.split("."))


def parse_input(text: str) -> TensorSpec:
    """Read `2x3x64x64`, `2x16:int64` or `2x16:int64<1000`; raises UsageError where it is none."""
    sizes, _, kind = text.partition(":")
    dtype, _, most = kind.partition("<")
    dtype = dtype or "float32"
    good = re.fullmatch(r"\d+(x\d+)*", sizes) and dtype in (*_FLOATS, *_INTEGERS)
    if not good or (most and not most.isdigit()) or (most and dtype in _FLOATS):
        raise UsageError(
            f"{text!r} is not an input",
            "Write its sizes and dtype, for example 2x3x64x64, or 2x16:int64<1000 for integers "
            "below 1000.",
        )
    shape = tuple(int(size) for size in sizes.split("x"))
    if dtype in _FLOATS:
        return TensorSpec(shape, dtype)
    below = 2 if dtype == "bool" else int(most or _BELOW)
    return TensorSpec(shape, dtype, "integers", low=0, high=max(1, below))

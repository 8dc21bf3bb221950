"""Plain values that training scripts put beside tensors: settings and numbers of numpy.

Nothing of numpy or argparse is called: a setting becomes a dictionary, a number a number, and an
array of numpy only a mark that it was there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isograd.checkpoints.safe_pickle import Attributes, Function, RefusedPickle

_NUMBERS = frozenset(f"{kind}{size}" for kind in "fiu" for size in (1, 2, 4, 8)) | {
    "b1",
    "c8",
    "c16",
}


class Dtype:
    """A dtype of numpy by its code, such as `f8`."""

    def __init__(self, code: str) -> None:
        self.code = code


def _dtype(code: Any, *_: Any) -> Dtype:
    if not isinstance(code, str):
        raise RefusedPickle("its pickle describes a dtype of numpy wrongly")
    return Dtype(code)


def _scalar(dtype: Any, content: Any = b"", *_: Any) -> int | float | str:
    if not isinstance(dtype, Dtype) or not isinstance(content, bytes):
        raise RefusedPickle("its pickle describes a number of numpy wrongly")
    if dtype.code not in _NUMBERS or len(content) != np.dtype(dtype.code).itemsize:
        return "a value of numpy"
    value: Any = np.frombuffer(content, dtype.code)[0].item()
    return value if isinstance(value, int | float) else str(value)


def _array(*_: Any) -> str:
    return "an array of numpy, which isograd does not read here"


def _encoded(text: Any, coding: Any) -> bytes:
    """The bytes of a text: how protocol 2 writes bytes."""
    if not isinstance(text, str) or coding != "latin1":
        raise RefusedPickle("its pickle encodes a text in an unknown way")
    return text.encode("latin1", errors="replace")


FUNCTIONS: dict[str, Function] = {
    "argparse.Namespace": lambda *_: Attributes(),
    "types.SimpleNamespace": lambda *_: Attributes(),
    "_codecs.encode": _encoded,
    "numpy.dtype": _dtype,
    **{
        f"numpy.{core}.multiarray.{name}": function
        for core in ("core", "_core")
        for name, function in (("scalar", _scalar), ("_reconstruct", _array))
    },
}
VALUES: dict[str, Any] = {"numpy.ndarray": None}

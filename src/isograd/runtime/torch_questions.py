"""Torch's questions about dtypes, names and settings, and what it asks its compilers."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mindspore as ms  # noqa: TID253
import numpy as np

from isograd.runtime.making import Typed, typed


def can_cast(from_: Any, to: Any) -> bool:
    """Whether torch would write numbers of one dtype into a tensor of another by itself."""
    return _kind_of(from_) <= _kind_of(to)


def _kind_of(dtype: Any) -> int:
    """Booleans, whole numbers, real numbers, complex ones, in this order."""
    if dtype == ms.bool_:
        return 0
    if dtype in (ms.complex64, ms.complex128):
        return 3
    return 2 if dtype in (ms.float16, ms.bfloat16, ms.float32, ms.float64) else 1


def typename(obj: Any) -> str:
    """The name of a tensor's class by its dtype, of anything else with its module."""
    if isinstance(obj, ms.Tensor):
        return str(typed(obj))
    owner = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(obj, "__module__", "") if owner is obj else owner.__module__
    return owner.__qualname__ if module in ("", None, "builtins") else _joined(module, owner)


def _joined(module: str, owner: Any) -> str:
    return f"{module}.{owner.__qualname__}"


def is_leaf(input: Any) -> bool:
    """Whether a tensor was computed from nothing that a gradient is taken of."""
    return bool(input._is_leaf)


def is_set_to(input: Any, tensor: Any) -> bool:
    """Whether two tensors are the same memory in the same shape."""
    return bool(input.data_ptr() == tensor.data_ptr() and input.shape == tensor.shape)


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, which no tensor of MindSpore's carries."""

    primal: Any
    tangent: Any


def unpack_dual(tensor: Any) -> UnpackedDualTensor:
    """A tensor of any shape as what torch's forward derivatives would find in it."""
    return UnpackedDualTensor(tensor, None)


class SymInt:
    """torch's size that its compilers do not know yet; a size of MindSpore's is never one."""


class SymFloat:
    """torch's number that its compilers do not know yet; a number here is never one."""


class SymBool:
    """torch's answer that its compilers do not know yet; an answer here is never one."""


def sym_max(a: Any, b: Any) -> Any:
    """The greater number, a float if one of both is."""
    found = builtins.max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The lesser number, a float if one of both is."""
    found = builtins.min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype of the sum; a tensor without axes gives way to one with axes of its kind."""
    if _gives_way(tensor2, tensor1):
        return tensor1.dtype
    if _gives_way(tensor1, tensor2):
        return tensor2.dtype
    for one, other in ((tensor1, tensor2), (tensor2, tensor1)):
        if isinstance(one, complex) and isinstance(other, ms.Tensor):
            return ms.complex128 if other.dtype in (ms.float64, ms.complex128) else ms.complex64
    total = tensor1 + tensor2
    if isinstance(total, complex):
        return ms.complex64
    if isinstance(total, float):
        return ms.float32
    if isinstance(total, int):  # also that of two booleans
        return ms.bool_ if isinstance(tensor1, bool) and isinstance(tensor2, bool) else ms.int64
    return total.dtype


def _gives_way(one: Any, other: Any) -> bool:
    """Whether a tensor without axes stands beside one with axes of its kind, or of a higher one."""
    if not isinstance(one, ms.Tensor) or not isinstance(other, ms.Tensor):
        return False
    return one.ndim == 0 and other.ndim > 0 and _kind_of(other.dtype) >= _kind_of(one.dtype)


def sum_of_both(sign: str, left: Any, right: Any) -> Any:
    """`left + right` or `left - right` in the dtype that torch takes."""
    if isinstance(left, ms.Tensor) and isinstance(right, ms.Tensor):
        kind = result_type(left, right)
        left, right = left.astype(kind), right.astype(kind)
    return left + right if sign == "+" else left - right


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """One function or the other of the operands; gradients pass through the one that runs."""
    return true_fn(*operands) if pred else false_fn(*operands)


#: What torch's settings were set to, for those who ask; MindSpore has its own.
_SETTINGS: dict[str, Any] = {
    "threads": os.cpu_count() or 1,
    "interop_threads": os.cpu_count() or 1,
    "precision": "highest",
    "warn_always": False,
    "debug_mode": 0,
}
_DEBUG_MODES = ("default", "warn", "error")


def set_num_threads(int: Any) -> None:
    """Kept for who asks: MindSpore takes its threads by `mindspore.runtime`'s settings."""
    _SETTINGS["threads"] = int


def get_num_threads() -> Any:
    """What was set, or the processor's cores."""
    return _SETTINGS["threads"]


def set_num_interop_threads(int: Any) -> None:
    """Kept for who asks: MindSpore takes its threads by `mindspore.runtime`'s settings."""
    _SETTINGS["interop_threads"] = int


def get_num_interop_threads() -> Any:
    """What was set, or the processor's cores."""
    return _SETTINGS["interop_threads"]


def set_float32_matmul_precision(precision: str) -> None:
    """Kept for who asks: MindSpore multiplies float32 by its own settings of the device."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high' or 'medium'.")
    _SETTINGS["precision"] = precision


def get_float32_matmul_precision() -> Any:
    """What was set, or "highest"."""
    return _SETTINGS["precision"]


def set_warn_always(b: Any) -> None:
    """Kept for who asks: a port has none of the warnings that torch gives once."""
    _SETTINGS["warn_always"] = bool(b)


def is_warn_always_enabled() -> Any:
    """What was set, or False."""
    return _SETTINGS["warn_always"]


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """Kernels that give the same bits each time, for all but "default" (0)."""
    number = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in (0, 1, 2):
        raise RuntimeError(f"{debug_mode} is not one of 0, 1 and 2.")
    if number:
        ms.set_deterministic(True)
    _SETTINGS["debug_mode"] = number


def get_deterministic_debug_mode() -> Any:
    """What was set, or 0."""
    return _SETTINGS["debug_mode"]


def set_default_device(device: Any) -> None:
    """Nothing: MindSpore places tensors where mindspore.set_device says."""


def set_default_tensor_type(t: Any) -> None:
    """float32, which MindSpore makes tensors in; raises ValueError for another one."""
    kind = t.dtype if isinstance(t, Typed) else t
    if kind != ms.float32 and str(kind).rpartition(".")[2] != "FloatTensor":
        raise ValueError(f"MindSpore has no default dtype other than float32; {t} was asked for")


def set_printoptions(
    precision: Any = None,
    threshold: Any = None,
    edgeitems: Any = None,
    linewidth: Any = None,
    profile: Any = None,
    sci_mode: Any = None,
) -> None:
    """numpy's settings, by which MindSpore prints tensors; sci_mode=True has no counterpart."""
    usual: dict[str, Any] = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80}
    profiles = {
        "default": usual,
        "short": {**usual, "precision": 2, "edgeitems": 2},
        "full": {**usual, "threshold": 2**62},
    }
    chosen: dict[str, Any] = dict(profiles[str(profile).lower()]) if profile is not None else {}
    given: dict[str, Any] = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems}
    given["linewidth"] = linewidth
    chosen |= {name: value for name, value in given.items() if value is not None}
    if chosen.get("threshold") == float("inf"):
        chosen["threshold"] = 2**62
    if sci_mode is not None:
        chosen["suppress"] = not sci_mode
    np.set_printoptions(**chosen)

"""Tensors from values, dtypes, and random numbers."""

from __future__ import annotations

import builtins
import functools
import math
import numbers
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253


def tensor(data: Any, dtype: Any = None, **_: Any) -> Any:
    """A tensor of torch's default dtypes: float32 for Python's floats, int64 for whole numbers.

    Of tensors a copy, which no gradient passes.
    """
    if isinstance(data, ms.Tensor):
        copied = ops.stop_gradient(data).copy()
        return copied if dtype in (None, data.dtype) else copied.astype(dtype)
    if isinstance(data, (list, tuple)) and any(isinstance(part, ms.Tensor) for part in data):
        return ops.stack([tensor(part, dtype) for part in data])
    array = np.asarray(data)
    kinds = {"f": np.float32, "c": np.complex64, "i": np.int64}
    if not _holds_own(data, array.dtype):
        array = array.astype(kinds.get(array.dtype.kind, array.dtype))
    return ms.Tensor(array) if dtype is None else ms.Tensor(array).astype(dtype)


def as_tensor(data: Any, dtype: Any = None, **_: Any) -> Any:
    """A tensor as it is, with its gradient; anything else as a new one."""
    if isinstance(data, ms.Tensor):
        return data if dtype in (None, data.dtype) else data.astype(dtype)
    return tensor(data, dtype)


def _holds_own(data: Any, kind: Any) -> builtins.bool:
    """Whether values are numpy's own, or among them there is a number of numpy's of their dtype."""
    if isinstance(data, (list, tuple)):
        # The static graph calls nothing by its own name in a generator.
        for part in data:  # noqa: SIM110
            if _holds_own(part, kind):
                return True
        return False
    return isinstance(data, (np.ndarray, np.generic)) and data.dtype == kind


class Typed:
    """torch.LongTensor and its like: of values, or zeros of a shape (torch's are not set)."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, *data: Any) -> Any:
        if data and all(isinstance(part, numbers.Integral) for part in data):
            return ops.zeros(tuple(builtins.int(part) for part in data), dtype=self.dtype)
        return tensor(data[0] if data else (), self.dtype)

    def __instancecheck__(self, value: Any) -> builtins.bool:
        return isinstance(value, ms.Tensor) and value.dtype == self.dtype


FloatTensor, DoubleTensor, HalfTensor = Typed(ms.float32), Typed(ms.float64), Typed(ms.float16)
LongTensor, IntTensor = Typed(ms.int64), Typed(ms.int32)
ShortTensor, CharTensor = Typed(ms.int16), Typed(ms.int8)
BoolTensor, ByteTensor = Typed(ms.bool_), Typed(ms.uint8)
_NAMED = {
    "Float": ms.float32, "Double": ms.float64, "Half": ms.float16, "BFloat16": ms.bfloat16,
    "Long": ms.int64, "Int": ms.int32, "Short": ms.int16, "Char": ms.int8, "Byte": ms.uint8,
    "Bool": ms.bool_,
}  # fmt: skip
_BY_NAME = {
    **{f"torch.{on}{name}Tensor": own for on in ("", "cuda.", "mps.", "xpu.")
       for name, own in _NAMED.items()},
    "torch.Tensor": ms.float32,
}  # fmt: skip

#: Dtypes without gradients.
_WHOLE = (
    ms.bool_, ms.uint8, ms.uint16, ms.uint32, ms.uint64, ms.int8, ms.int16, ms.int32, ms.int64,
    builtins.bool, builtins.int,
)  # fmt: skip


def typed(input: Any, kind: Any = None) -> Any:
    """The tensor in a dtype, which torch's name or class may stand for; without one, its name.

    Anything but a tensor has its own `type` called.
    """
    if not isinstance(input, ms.Tensor):
        return input.type() if kind is None else input.type(kind)
    if kind is None:
        # The static graph knows no `next` of these, and no tuple of a text and a dtype.
        for name, own in _BY_NAME.items():
            if own == input.dtype:
                return name
    if isinstance(kind, Typed):
        return _as(input, kind.dtype)
    if kind is ms.Tensor:  # torch's class of floats
        kind = ms.float32
    if isinstance(kind, str):
        kind = _BY_NAME[kind]
    return _as(input, kind)


def numpy_gives_way() -> None:
    """Let numpy's numbers and arrays give way to tensors, as they do in torch.

    `np.sqrt(2) * x` is a tensor then; else numpy takes x for an array, and its gradient is lost.
    Integers and arrays of numpy's are positions of tensors, too, and `np.exp(x)` is a tensor.
    """
    if getattr(ms.Tensor, "__array_priority__", 0) == 1000:
        return
    ms.Tensor.__array_priority__ = 1000
    for name in ("__eq__", "__ne__", "__rtruediv__"):
        setattr(ms.Tensor, name, _taking_numpy(getattr(ms.Tensor, name)))
    for name in ("__getitem__", "__setitem__"):
        taking = _by_numpy(getattr(ms.Tensor, name))
        setattr(ms.Tensor, name, taking)
        setattr(ms.Parameter, name, taking)  # whose class does not derive from Tensor
    for kind in (ms.Tensor, ms.Parameter):
        kind.__array_wrap__ = _of_array


def _of_array(self: Any, array: Any, *_: Any) -> Any:
    """What a function of numpy's has made of a tensor: a tensor, of bytes where it is a mask."""
    return ms.Tensor(array.astype(np.uint8) if array.dtype.kind == "b" else array)


def _taking_numpy(operation: Any) -> Any:
    """An operation of tensors, for numbers and arrays of numpy's too."""

    def method(self: Any, other: Any) -> Any:
        return operation(self, _of_python(other))

    return functools.wraps(operation)(method)


def _by_numpy(operation: Any) -> Any:
    """`x[i]` and `x[i] = y` for numbers and arrays of numpy's, which MindSpore's own refuse."""

    def method(self: Any, key: Any, *values: Any) -> Any:
        if isinstance(key, tuple):
            key = tuple(map(_of_python, key))
        return operation(self, _of_python(key), *values)

    return functools.wraps(operation)(method)


def _of_python(part: Any) -> Any:
    """A number of numpy's as Python's, an array as a tensor; anything else as it is."""
    if isinstance(part, np.generic):
        return part.item()
    return ms.Tensor(part) if isinstance(part, np.ndarray) else part


def floating(input: Any) -> Any:
    """The tensor as torch's functions of real numbers take it: whole numbers as float32."""
    return input.astype(ms.float32) if input.dtype in _WHOLE else input


def of_one_float_dtype(input: Any, other: Any) -> tuple[Any, Any]:
    """Two tensors, or a tensor and a number, in the dtype in which torch's functions take them."""
    if not isinstance(input, ms.Tensor):
        other = floating(other)
        return ops.full_like(other, input), other
    if not isinstance(other, ms.Tensor):
        input = floating(input)
        return input, ops.full_like(input, other)
    kind = _kind_of_both(input, other)
    return floating(input.astype(kind)), floating(other.astype(kind))


def _kind_of_both(input: Any, other: Any) -> Any:
    """The dtype of two tensors: a number alone does not widen what has axes, if both are floats."""
    if input.dtype == other.dtype:
        return input.dtype
    if ops.is_floating_point(input) and ops.is_floating_point(other):
        if input.ndim == 0 and other.ndim:
            return other.dtype
        if other.ndim == 0 and input.ndim:
            return input.dtype
    return promote_types(input.dtype, other.dtype)


def exactly(function: Any, input: Any) -> Any:
    """A function of real numbers, rounded once: MindSpore's on the CPU are rough in float32.

    For values that are cut to whole numbers, where one unit in the last place is one bucket.
    """
    kind = ms.float32 if input.dtype in _WHOLE else input.dtype
    if not _is_on_cpu():
        return function(input.astype(kind))
    return function(input.astype(ms.float64)).astype(kind)


@ops.constexpr  # type: ignore[untyped-decorator]  # MindSpore's has no types
def _is_on_cpu() -> builtins.bool:
    """Whether MindSpore runs on the CPU; asked when a graph is made, which has no contexts."""
    return builtins.bool(ms.get_context("device_target") == "CPU")


def of_one_dtype(tensors: Any) -> Any:
    """The tensors in the dtype of their sum, as torch puts them side by side."""
    kind, is_one = tensors[0].dtype, True
    for part in tensors[1:]:  # no set of dtypes, which the static graph refuses
        if part.dtype != kind:
            kind, is_one = promote_types(kind, part.dtype), False
    return tensors if is_one else [part.astype(kind) for part in tensors]


def without_empty(tensors: Any) -> Any:
    """The tensors in the dtype of all, but those without elements of one axis, as cat joins them.

    Torch's cat leaves `torch.empty(0)` out whatever the others' axes are.
    """
    parts = of_one_dtype(list(tensors))
    return [part for part in parts if tuple(part.shape) != (0,)] or parts[:1]


def element_count(shape: Any) -> builtins.int:
    """How many elements a tensor of this shape, or what else counts its elements, has."""
    return math.prod(shape) if isinstance(shape, (tuple, list)) else shape.numel()


def full(size: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    """A tensor of one number; without a dtype, that of the number in torch."""
    if isinstance(fill_value, ms.Tensor):
        dtype = dtype or fill_value.dtype
    elif dtype is None:
        known = {"f": ms.float32, "c": ms.complex64, "i": ms.int64, "b": ms.bool_}
        dtype = known[np.asarray(fill_value).dtype.kind]
    return ops.full(
        (size,) if isinstance(size, builtins.int) else tuple(size), fill_value, dtype=dtype
    )


def new_zeros(like: Any, size: Any, dtype: Any = None) -> Any:
    """Zeros of a tensor's dtype, or of one that is given."""
    return ops.zeros(size, dtype=like.dtype if dtype is None else dtype)


def new_ones(like: Any, size: Any, dtype: Any = None) -> Any:
    """Ones of a tensor's dtype, or of one that is given."""
    return ops.ones(size, dtype=like.dtype if dtype is None else dtype)


def new_full(like: Any, size: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One number of a tensor's dtype, or of one that is given."""
    return full(size, fill_value, like.dtype if dtype is None else dtype)


def new_tensor(like: Any, data: Any, dtype: Any = None) -> Any:
    """Values of a tensor's dtype, or of one that is given."""
    return tensor(data, like.dtype if dtype is None else dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, **_: Any) -> Any:
    """Numbers in equal steps: int64 for whole numbers, float32 else."""
    if end is None:
        start, end = 0, start
    numbers = [n.item() if isinstance(n, ms.Tensor) else n for n in (start, end, step)]
    values = np.arange(*numbers)
    whole = all(isinstance(n, (builtins.int, np.integer)) for n in numbers)
    found = ms.Tensor(values.astype(np.int64 if whole else np.float32))
    return found if dtype is None else ms.Tensor(values).astype(dtype)


def _cast(dtype: Any) -> Any:
    def cast(input: Any) -> Any:
        # Out of float into whole numbers torch cuts off, through int64.
        return _as(input, dtype)

    return cast


float, double, half = _cast(ms.float32), _cast(ms.float64), _cast(ms.float16)
int, long, short = _cast(ms.int32), _cast(ms.int64), _cast(ms.int16)
bool, char = _cast(ms.bool_), _cast(ms.int8)


def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """`Tensor.to`: only a dtype, or another tensor's, changes anything; `copy` makes a new one."""
    given = input
    for value in (*args, *kwargs.values()):
        dtype = _dtype_of(value)
        if dtype is not None:
            given = _as(input, dtype)
            break
    switches = [value for value in args if isinstance(value, builtins.bool)]
    is_copy = kwargs.get("copy") or (len(switches) == 2 and switches[1])
    return ops.deepcopy(given) if is_copy and given is input else given


def _dtype_of(value: Any) -> Any:
    """The dtype that an argument of `to` names; None for devices and switches.

    One question after the other: the static graph knows no tuple of types here.
    """
    if isinstance(value, str) or value is None:
        return None
    if isinstance(value, builtins.bool):
        return None
    if isinstance(value, ms.Tensor):
        return value.dtype
    if isinstance(value, type(ms.float32)) or value in (ms.float32, ms.int64, ms.bool_):
        return value
    return value if "mindspore" in type(value).__module__ else None


def _as(input: Any, dtype: Any) -> Any:
    """The tensor in a dtype, or itself; of integers without a gradient, unlike MindSpore's."""
    if input.dtype == dtype:
        return input
    if dtype in _WHOLE and input.dtype not in _WHOLE:
        input = ops.stop_gradient(input)
    return input.astype(dtype)


#: The greatest number, the step behind 1, the smallest normal number and the bits of dtypes that
#: numpy has not.
_LIMITS = {
    ms.bfloat16: (3.3895313892515355e38, 2.0**-7, 2.0**-126, 16),
    ms.float8_e4m3fn: (448.0, 2.0**-3, 2.0**-6, 8),
    ms.float8_e5m2: (57344.0, 2.0**-2, 2.0**-14, 8),
}


class _Limits:
    """What `torch.finfo` and `torch.iinfo` answer."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = str(dtype).rpartition(".")[2].lower()
        if dtype in _LIMITS:
            self.max, self.eps, self.tiny, self.bits = _LIMITS[dtype]
            self.min, self.smallest_normal = -self.max, self.tiny
            self.resolution = 10.0 ** math.ceil(math.log10(self.eps))
            return
        numbers = ms.dtype_to_nptype(dtype)
        if np.issubdtype(numbers, np.floating):
            floating = np.finfo(numbers)
            self.min, self.max = floating.min.item(), floating.max.item()
            self.eps, self.tiny = floating.eps.item(), floating.tiny.item()
            self.smallest_normal, self.bits = self.tiny, floating.bits
            self.resolution = 10.0**-floating.precision
        else:
            whole = np.iinfo(numbers)
            self.min, self.max, self.bits = whole.min, whole.max, whole.bits


def finfo(type: Any = None) -> _Limits:
    """The limits of a float dtype."""
    return _Limits(ms.float32 if type is None else type)


def iinfo(type: Any) -> _Limits:
    """The limits of an integer dtype."""
    return _Limits(type)


def layout(input: Any) -> str:
    """How a tensor's elements are kept, by torch's name."""
    if isinstance(input, ms.COOTensor):
        return "torch.sparse_coo"
    return "torch.sparse_csr" if isinstance(input, ms.CSRTensor) else "torch.strided"


def set_default_dtype(d: Any) -> None:
    """float32, which MindSpore makes tensors in; raises ValueError for another one."""
    if d != ms.float32:
        raise ValueError(f"MindSpore has no default dtype other than float32; {d} was asked for")


def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype of the sum of two tensors of these dtypes."""
    first, second = (ops.ones((1,), dtype=kind) for kind in (type1, type2))
    return (first + second).dtype


# ---- random numbers


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = None) -> Any:
    """Whole numbers from low up to below high; low is 0 where only one bound is given."""
    if size is None:
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    found = ops.randint(low, high, tuple(size))
    return found.astype(ms.int64 if dtype is None else dtype)


def randint_like(input: Any, low: Any, high: Any = None, dtype: Any = None) -> Any:
    """Whole numbers in the shape and dtype of a tensor."""
    low, high = (0, low) if high is None else (low, high)
    found = ops.randint(low, high, tuple(input.shape))
    return found.astype(input.dtype if dtype is None else dtype)


def normal_like(input: Any, mean: Any = 0.0, std: Any = 1.0) -> Any:
    """Normal numbers in the shape and dtype of a tensor."""
    return (ops.randn(*input.shape) * std + mean).astype(input.dtype)


def uniform_like(input: Any, a: Any = 0.0, b: Any = 1.0) -> Any:
    """Uniform numbers in the shape and dtype of a tensor."""
    return (ops.rand(*input.shape) * (b - a) + a).astype(input.dtype)


def bernoulli_like(input: Any, p: Any = 0.5) -> Any:
    """Ones with probability p, else zeros, in the shape and dtype of a tensor."""
    # 1 - rand lies in (0, 1]: never a one for p = 0, always for p = 1
    return (1 - ops.rand(*input.shape) <= p).astype(input.dtype)


def bernoulli(input: Any) -> Any:
    """Ones with the probabilities that the tensor holds."""
    return (1 - ops.rand(*input.shape) <= input).astype(input.dtype)


def _open_uniform(input: Any) -> Any:
    """Uniform between 0 and 1 without both ends."""
    return ops.clamp(ops.rand(*input.shape), 1e-7, 1 - 1e-7)


def exponential_like(input: Any, lambd: Any = 1.0) -> Any:
    """Exponential numbers of a rate, in the shape and dtype of a tensor."""
    return (-ops.log(_open_uniform(input)) / lambd).astype(input.dtype)


def cauchy_like(input: Any, median: Any = 0.0, sigma: Any = 1.0) -> Any:
    """Cauchy numbers in the shape and dtype of a tensor."""
    return (median + sigma * ops.tan(math.pi * (_open_uniform(input) - 0.5))).astype(input.dtype)


def geometric_like(input: Any, p: Any) -> Any:
    """The number of the first success, from 1, in the shape and dtype of a tensor."""
    return ops.ceil(ops.log(_open_uniform(input)) / math.log(1 - p)).astype(input.dtype)


def normal(mean: Any, std: Any = 1.0, size: Any = None) -> Any:
    """Normal numbers; mean and deviation as numbers with a size, or as tensors without gradient."""
    if size is None:
        size = mean.shape if isinstance(mean, ms.Tensor) else std.shape
    return ops.stop_gradient(ops.randn(*size) * std + mean)


def poisson(input: Any) -> Any:
    """Poisson numbers of the rates that the tensor holds."""
    rates = ops.stop_gradient(input).astype(ms.float32)
    return ops.random_poisson(ms.Tensor([1], ms.int32), rates)[0].astype(input.dtype)


def multinomial(input: Any, num_samples: Any, replacement: Any = False) -> Any:
    """Positions drawn with the weights of the last axis (the greatest of log w + Gumbel noise)."""
    rows = input if input.ndim == 2 else input.expand_dims(0)
    count = num_samples if replacement else 1
    shape = (rows.shape[0], count, rows.shape[1])
    noise = -ops.log(-ops.log(ops.clamp(ops.rand(*shape), 1e-7, 1 - 1e-7)))
    scores = ops.log(rows).expand_dims(1) + noise
    if replacement:
        found = ops.argmax(scores, -1)
    else:
        found = ops.sort(scores.squeeze(1), -1, True)[1][:, :num_samples]
    found = found.astype(ms.int64)
    return found if input.ndim == 2 else found.squeeze(0)


def rrelu(
    input: Any,
    lower: Any = 0.125,
    upper: Any = 1 / 3,
    training: Any = False,
    inplace: Any = False,
) -> Any:
    """Leaky ReLU whose slope is drawn for each element in training."""
    slope = uniform_like(input, lower, upper) if training else (lower + upper) / 2
    return ops.where(input > 0, input, input * slope)


def range(start: Any, end: Any, step: Any = 1, dtype: Any = None) -> Any:
    """torch's deprecated `range`: the end belongs to it, and the default is float32."""
    count = builtins.int((end - start) / step) + 1
    values = start + step * np.arange(count)
    return ms.Tensor(values.astype(np.float32)).astype(ms.float32 if dtype is None else dtype)

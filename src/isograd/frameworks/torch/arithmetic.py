"""The same torch computation in float64, or natively with simulated rounding.

float64 is the reference of every comparison (MindSpore's CPU kernels have no float64
convolution).  The simulated rounding spans the envelope: what another correct implementation
may yield.  Noise is added behind every ATen operator, forward and backward, with a magnitude of
one unit in the last place, times the operator's floor in the device profile
(`isograd.verify.device_profile`), because kernels differ: MindSpore's CPU tanh is a thousand units
off.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from isograd.frameworks.base import SIGNS, Arithmetic, Floors
from isograd.frameworks.torch.exact import rounds_nothing, tensors_of, whole
from isograd.frameworks.torch.float64 import Float64
from isograd.tensors import UNIT_ROUNDOFF

#: With fewer elements than this, all draws may be small by chance, and the noise with them: none
#: is below a half then (of one element, four draws are below a third in 1 % of cases).
_FEW = 16
#: Elements that are moved at a time: with what is made of them they stay in a second cache.
_BLOCK = 1 << 16
#: A draw is a whole number from -_DRAWS to _DRAWS - 1.
_DRAWS = 1 << 15
#: Operators whose rounding hangs on how far their inputs lie from one another.
_OF_SPREAD = frozenset(("_softmax", "softmax", "_log_softmax", "log_softmax", "logsumexp"))
#: Gradients that are differences of what they were given: their rounding is relative to that.
_CANCELLING = frozenset(("gelu_backward", "silu_backward", "mish_backward"))

#: exp(-16) is a unit in the last place of 1.
_NEGLIGIBLE = 16.0

#: Results of `convolution_backward` after the first: sums over batch and places.
_WEIGHT_GRADIENT = "convolution_backward.weight"

#: Operators that work element by element: their rounding is relative to the element itself.
POINTWISE = frozenset(
    """add sub mul div rsub pow sqrt rsqrt exp expm1 log log1p log2 tanh sigmoid erf gelu silu
    mish hardswish hardsigmoid elu softplus leaky_relu reciprocal sin cos lerp addcmul addcdiv
    square _softmax softmax exp2 logit atan2 prelu _prelu_kernel glu""".split()
)
#: Functions whose results lie between two numbers, in every implementation.
_RANGES = {
    **dict.fromkeys(("sigmoid", "softmax", "_softmax", "hardsigmoid"), (0.0, 1.0)),
    **dict.fromkeys(("tanh", "erf", "sin", "cos"), (-1.0, 1.0)),
}


class RoundingNoise(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own
    """Moves the result of every ATen operator by its simulated rounding error."""

    def __init__(self, arithmetic: Arithmetic, floors: Floors) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self._generator = torch.Generator().manual_seed(arithmetic.seed * 7919 + 17)
        self._amplitude = arithmetic.amplitude
        self._biased = arithmetic.biased
        self._floors = floors

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = func._schema.name.partition("::")[2]
        base = name.rstrip("_") if not name.startswith("_") else name
        # Of tensors without memory (`_with_memory`) torch asks the shape of the result by itself.
        if (
            func.is_view
            or any(t.is_meta for t in tensors_of(args))
            or rounds_nothing(base, args, kwargs or {})
        ):
            return func(*args, **(kwargs or {}))
        read = tuple(_with_memory(argument) for argument in args)
        # Before the operator runs: it may change its input in place.
        floor = self._floor_of(base, read, kwargs or {})
        result = func(*args, **(kwargs or {}))
        written = [
            value
            for argument, value in zip(func._schema.arguments, args, strict=False)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if written:
            for tensor in tensors_of(written):
                self._move(tensor, base, 0, read, floor)
            return result
        for position, tensor in _numbered(result):
            if base == "convolution_backward" and position > 0:
                floor = _floor(self._floors.get(_WEIGHT_GRADIENT), _WEIGHT_GRADIENT, read)
            self._move(tensor, base, position, read, floor)
        if "batch_norm" in base and "backward" not in base:
            for tensor in args[3:5]:
                if isinstance(tensor, torch.Tensor):
                    self._move(tensor, "add", 0, read, floor)
        return result

    def _floor_of(
        self, base: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> float | torch.Tensor:
        # One ATen operator, two formulas: GELU by erf, and by tanh.
        kind = f"{base}.tanh" if kwargs.get("approximate") == "tanh" else base
        floor: float | torch.Tensor = _floor(self._floors.get(kind), base, args)
        for sign, name in SIGNS.items():
            table = self._floors.get(f"{kind}.{name}")
            if table:
                floor = _raised_near(table, sign * _nonlinear_in(base, args), floor)
        return floor

    def _move(
        self,
        tensor: torch.Tensor,
        name: str,
        position: int,
        args: tuple[Any, ...],
        floor: float | torch.Tensor,
    ) -> None:
        """Move a tensor in place by its rounding error."""
        unit = UNIT_ROUNDOFF.get(str(tensor.dtype).removeprefix("torch."))
        if unit is None or tensor.numel() == 0 or tensor.dtype is torch.float64:
            return
        if tensor.layout is not torch.strided:
            return  # a sparse tensor holds values of dense ones; what is computed of it is dense
        if tensor._is_zerotensor():
            return  # exactly zero, and without memory that could be written
        with torch.no_grad():
            work = tensor.float().contiguous()
            terms = _flat(_terms_rounded(work, name, position, args), tensor.shape)
            share, floors = 2.0 * unit * self._amplitude, None
            if isinstance(floor, torch.Tensor):
                floors = _flat(floor, tensor.shape)
            else:
                share *= floor
            flat = work.view(-1)
            for begin in range(0, flat.numel(), _BLOCK):
                part = slice(begin, begin + _BLOCK)
                values = flat[part]
                scale = values.abs()
                if terms is not None:
                    scale = torch.maximum(scale, terms[part] if terms.dim() else terms)
                if floors is not None:
                    scale *= floors[part] if floors.dim() else floors
                moved = torch.addcmul(values, scale, self._draw(len(values)), value=share)
                if not math.isfinite(float(moved.sum())):
                    moved = torch.where(torch.isfinite(values), moved, values)
                if name in _RANGES:
                    moved.clamp_(*_RANGES[name])
                values.copy_(moved)
            if work.data_ptr() != tensor.data_ptr():
                tensor.copy_(work)

    def _draw(self, count: int) -> torch.Tensor:
        """Numbers between -1 and 1, or from 0 where the rounding is biased: float32 of (count,).

        16 bits each, four from one draw: a fifth of the time of as many draws, and noise needs no
        finer steps.
        """
        whole = torch.empty((count + 3) // 4, dtype=torch.int64)
        whole.random_(-(1 << 63), None, generator=self._generator)
        draw = whole.view(torch.int16)[:count].float().mul_(1.0 / _DRAWS)
        if self._biased:
            draw.add_(1.0).mul_(0.5)
        if count < _FEW:
            draw = torch.copysign(0.5 + 0.5 * draw.abs(), draw)
        return draw


#: Norms below it, or above its inverse, may hold squares that float32 has not.
_SMALL_SQUARES = 1e-16


def _nonlinear_in(base: str, args: tuple[Any, ...]) -> torch.Tensor:
    """What the floor of each element goes by: the input, of a GLU the half that is its gate."""
    given: torch.Tensor = args[0]
    if base != "glu":
        return given
    return given.chunk(2, args[1] if len(args) > 1 else -1)[1]


def _flat(values: torch.Tensor | None, shape: torch.Size) -> torch.Tensor | None:
    """These values spread over a shape and laid out flat; one number stays one."""
    return values if values is None or not values.dim() else values.expand(shape).reshape(-1)


def _floor(table: list[list[float]] | None, name: str, args: tuple[Any, ...]) -> float:
    """The floor for inputs of this magnitude, or for as many terms, between the measured ones."""
    if not table:
        return 1.0
    if len(table) == 1 or not args or not isinstance(args[0], torch.Tensor):
        return max(floor for _, floor in table)
    place = _terms(name, args) or _magnitude(name, args)
    if not place > table[0][0]:
        return table[0][1]
    for (low, first), (high, second) in itertools.pairwise(table):
        if place <= high:
            share = math.log(place / low) / math.log(high / low)
            return float(first ** (1 - share) * second**share)
    return table[-1][1]


def _magnitude(name: str, args: tuple[Any, ...]) -> float:
    """The typical size of an operator's inputs; of a softmax and its kin how far they are spread.

    A softmax is the same wherever its inputs lie, and what is masked (by -100, by -inf) makes
    nothing of its result.
    """
    with torch.no_grad():
        values = args[0].detach().float()
        if name not in _OF_SPREAD or not values.dim():
            return float(values.square().mean().sqrt())
        dim = args[1] if len(args) > 1 and isinstance(args[1], int) else -1
        kept = values > values.amax(dim, keepdim=True) - _NEGLIGIBLE
        count = kept.sum(dim, keepdim=True)
        mean = torch.where(kept, values, 0.0).sum(dim, keepdim=True) / count
        return float(torch.where(kept, values - mean, 0.0).square().sum().div(kept.sum()).sqrt())


def _raised_near(
    table: list[list[float]], values: torch.Tensor, floor: float | torch.Tensor
) -> torch.Tensor:
    """The floor of each element: what was measured near it where it is positive."""
    with torch.no_grad():
        places, floors = torch.tensor(table, dtype=torch.float32).log().T.contiguous()
        sizes = values.detach().float().clamp_min(table[0][0]).log()
        after = torch.bucketize(sizes, places).clamp(1, len(table) - 1)
        low, high = places[after - 1], places[after]
        share = ((sizes - low) / (high - low)).clamp(0.0, 1.0)
        found = torch.lerp(floors[after - 1], floors[after], share).exp()
        return torch.where(values > 0, found, 1.0).clamp_min(floor)


def _terms(name: str, args: tuple[Any, ...]) -> int:
    """How many products a convolution adds up for one element of its result; 0 of other operators.

    A transposed convolution, and the gradient of one that is not, add over the output's channels;
    the weight's gradient adds over batch and places.
    """
    if name == "convolution":
        weight, is_transposed, groups, stride = args[1], args[6], args[8], args[3]
    elif name == "convolution_backward":
        weight, is_transposed, groups, stride = args[2], not args[7], args[9], args[4]
    elif name == _WEIGHT_GRADIENT:
        smaller = args[1] if args[7] else args[0]
        return max(1, int(smaller.numel()) // max(1, int(smaller.shape[1])))
    else:
        return 0
    window = weight.shape[2:]
    if is_transposed:
        reached = math.prod(-(-k // s) for k, s in zip(window, stride, strict=True))
        return int(weight.shape[0] // groups * reached)
    return int(weight.shape[1] * math.prod(window))


def _terms_rounded(
    result: torch.Tensor, name: str, position: int, args: tuple[Any, ...]
) -> torch.Tensor | None:
    """The magnitude to which an element's rounding error is relative where it is above its own.

    Of the result's shape, or one number for all; None where the element's own counts alone.

    For an element-wise operator the element; for a sum of products the typical element, because
    an element that cancels keeps the error of its terms; for plain sums and the parameter
    gradients of normalisations and biases the partial sums of one addition after the other
    (random rounding errors, Higham & Mary 2019, doi 10.1137/18M1226312), which is how MindSpore's
    CPU kernels add: measured, 22,000 units in the last place for 131,072 terms.
    """
    if name in POINTWISE:
        return None
    terms: torch.Tensor | None = None
    source = args[0] if args and isinstance(args[0], torch.Tensor) else None
    if source is None or not source.is_floating_point() or not result.numel():
        pass
    elif name in ("sum", "mean"):
        terms = _sequential_sum(source, _reduced(source, args), result)
        if terms is not None and name == "mean":
            terms = terms / max(1.0, source.numel() / result.numel())
    elif name in _CANCELLING:
        terms = source.abs()
    elif name == "logsumexp":
        terms = torch.where(torch.isfinite(source), source.abs(), 0.0).max()
    elif name == "convolution_backward" and position == 2:
        terms = _sequential_sum(source, _all_but(source, 1), result)
    elif name.endswith("norm_backward"):
        if result.shape == source.shape:
            terms = _normalisation_input_scale(source.float(), name, args)
        else:
            kept = 1 if "layer_norm" not in name else source.dim() - 1
            terms = _sequential_sum(source, _all_but(source, kept), result)
    if terms is not None:
        return terms
    typical = _norm(result) / math.sqrt(max(1, result.numel()))
    return torch.nan_to_num(typical, 0.0, 0.0, 0.0)


def _norm(values: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """Root of the sum of squares; of numbers whose squares leave float32 in float64."""
    found: torch.Tensor = torch.linalg.vector_norm(values, dim=dim)
    if not bool(((found > _SMALL_SQUARES) & (found < 1.0 / _SMALL_SQUARES)).all()):
        found = torch.linalg.vector_norm(values, dim=dim, dtype=torch.float64).to(found.dtype)
    return found


def _all_but(source: torch.Tensor, kept: int) -> list[int]:
    return [d for d in range(source.dim()) if d != kept]


def _reduced(source: torch.Tensor, args: tuple[Any, ...]) -> list[int]:
    dims = args[1] if len(args) > 1 else None
    if isinstance(dims, int):
        dims = [dims]
    if not isinstance(dims, (list, tuple)) or not dims:
        return list(range(source.dim()))
    return [d % source.dim() for d in dims]


def _sequential_sum(
    source: torch.Tensor, dims: list[int], result: torch.Tensor
) -> torch.Tensor | None:
    """Root of the sum of squares of the partial sums: each addition rounds the sum so far."""
    kept = [d for d in range(source.dim()) if d not in dims]
    terms = source.float().permute([*dims, *kept]).reshape(-1, max(1, result.numel()))
    if terms.numel() != source.numel():
        return None
    return _norm(terms.cumsum(0), 0).reshape(result.shape)


def _normalisation_input_scale(
    gradient: torch.Tensor, name: str, args: tuple[Any, ...]
) -> torch.Tensor | None:
    """What cancels in a normalisation's gradient, and what the sums in it are rounded by.

    The gradient is w/σ · (dy − mean(dy) − x̂ · mean(dy · x̂)): the typical term stays as rounding
    error where terms cancel, and both means carry the error of their partial sums.  Gradients of
    one sign, as a mean over the positions gives them, make those great: MindSpore's batch norm
    measured up to 2.9 times this scale (four seeds, three shapes).
    """
    found = _normalisation_rows(gradient, name, args)
    if found is None:
        return None
    rows, normalised, inverse, back = found
    typical = _norm(rows) / math.sqrt(max(1, rows.numel())) * inverse.abs().max()
    if normalised is None:
        return typical.expand(gradient.shape)
    count = rows.shape[1]
    first = _norm(rows.cumsum(1), 1).unsqueeze(1) / count
    second = _norm((rows * normalised).cumsum(1), 1).unsqueeze(1) / count
    return torch.maximum(typical, back(inverse * (first + normalised.abs() * second)))


_Rows = tuple[
    torch.Tensor, torch.Tensor | None, torch.Tensor, Callable[[torch.Tensor], torch.Tensor]
]


def _normalisation_rows(gradient: torch.Tensor, name: str, args: tuple[Any, ...]) -> _Rows | None:
    """dy · w and x̂ in rows of what is normalised together, 1/σ of each row, and the way back.

    x̂ is None where nothing is summed: a batch norm that uses its running statistics.
    """
    source = args[1].float()
    if "batch_norm" in name:
        weight, mean, inverse = args[2], args[5], args[6]
        if not _has_values(inverse):
            return None
        order = [1, 0, *range(2, gradient.dim())]
        count = gradient.shape[1]
        moved = gradient.permute(order)
        shape = moved.shape
        rows, values = moved.reshape(count, -1), source.permute(order).reshape(count, -1)
        inverse = inverse.float().reshape(count, 1)
        if _has_values(weight):
            rows = rows * weight.float().reshape(count, 1)
        if not args[7] or not _has_values(mean):
            return rows, None, inverse, lambda part: part
        normalised = (values - mean.float().reshape(count, 1)) * inverse
        return rows, normalised, inverse, lambda part: part.reshape(shape).permute(order)
    if "group_norm" in name:
        mean, inverse, weight = args[2], args[3], args[4]
        if _has_values(weight):
            gradient = gradient * weight.float().reshape(-1, *[1] * (gradient.dim() - 2))
    elif "layer_norm" in name:
        mean, inverse, weight = args[3], args[4], args[5]
        if _has_values(weight):
            gradient = gradient * weight.float()
    else:
        return None
    if not _has_values(inverse):
        return None
    shape, count = gradient.shape, inverse.numel()
    inverse = inverse.float().reshape(count, 1)
    normalised = (source.reshape(count, -1) - mean.float().reshape(count, 1)) * inverse
    return gradient.reshape(count, -1), normalised, inverse, lambda part: part.reshape(shape)


def _has_values(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > 0


def _with_memory(value: Any) -> Any:
    """A tensor that can be read: autograd's zeros (the gradient of `sgn`) have no memory."""
    if isinstance(value, torch.Tensor) and value._is_zerotensor():
        return value.clone()
    return value


def _numbered(result: Any) -> Iterator[tuple[int, torch.Tensor]]:
    """The results of an operator with their places; those that were not asked for are None."""
    for position, value in enumerate(result if isinstance(result, (tuple, list)) else [result]):
        yield from ((position, tensor) for tensor in tensors_of([value]))


@contextlib.contextmanager
def computing(arithmetic: Arithmetic, floors: Floors) -> Iterator[None]:
    """Compute what is inside with this arithmetic; undone on the way out."""
    with contextlib.ExitStack() as stack:
        if arithmetic.float64:
            before = torch.get_default_dtype()
            stack.callback(torch.set_default_dtype, before)
            torch.set_default_dtype(torch.float64)
            stack.enter_context(torch.autocast("cpu", enabled=False))
            stack.enter_context(Float64())
        if arithmetic.alternative_kernels:
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        if arithmetic.operator_noise:
            stack.enter_context(RoundingNoise(arithmetic, floors))
        yield


def with_input_noise(tensor: torch.Tensor, arithmetic: Arithmetic, position: int) -> torch.Tensor:
    """Move every element to one of its neighbours, or leave it, at random; integers stay.

    Integers are what programs compare with (masks, flags, counts): a zero that moves makes
    another program of `mask == 0`, and an envelope behind which every fault passes.
    """
    if not tensor.is_floating_point() or tensor.dtype is torch.float64:
        return tensor
    generator = torch.Generator().manual_seed(arithmetic.seed * 104729 + position)
    with torch._C.DisableTorchFunction():  # while the network's own draws are constants
        draw = torch.randint(-1, 2, tensor.shape, generator=generator)
    draw = torch.where(whole(tensor), 0, draw)
    if tensor.dtype is torch.float32:
        towards = torch.where(draw < 0, -math.inf, math.inf)
        return torch.where(draw == 0, tensor, torch.nextafter(tensor, towards))
    unit = 2 * UNIT_ROUNDOFF[str(tensor.dtype).removeprefix("torch.")]
    return (tensor.float() * (1 + unit * draw)).to(tensor.dtype)

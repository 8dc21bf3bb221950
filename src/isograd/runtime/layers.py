"""Products: linear layers, convolutions, attention, embeddings."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import many, shape_with, sum_of, take
from isograd.runtime.pointwise import softmax_by_hand, softmax_of_masked


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Rows times the transposed weight, plus the bias."""
    found = ops.matmul(input, ops.swapaxes(weight, 0, 1))
    return found if bias is None else found + bias


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Elements dropped in training, the others larger for it."""
    if not training or p == 0:
        return input
    return ops.zeros_like(input) if p == 1 else ops.dropout(input, float(p), True)


def dropout_channels(input: Any, p: float, training: bool, dimensions: int) -> Any:
    """Channels dropped in training, the others larger for it; with or without a batch axis."""
    if not training or p == 0:
        return input
    kept = ops.ones((*input.shape[: input.ndim - dimensions], *[1] * dimensions), dtype=input.dtype)
    return input * dropout(kept, p)


def alpha_dropout(input: Any, p: Any = 0.5, training: Any = False, inplace: Any = False) -> Any:
    """Dropout that keeps mean and variance of a self-normalising network."""
    if not training or p == 0:
        return input
    return _dropped_to_lowest(input, ops.ones_like(input), p)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """alpha_dropout of whole channels: what lies behind the first two axes, as in torch."""
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:2], *[1] * (input.ndim - 2))
    return _dropped_to_lowest(input, ops.ones(shape, dtype=input.dtype), p)


def _dropped_to_lowest(input: Any, ones: Any, p: Any) -> Any:
    """SELU's lowest value where dropout drops one of the ones, scaled and moved."""
    if p == 1:
        return ops.zeros_like(input)
    lowest = -1.0507009873554805 * 1.6732632423543772
    scale = ((1 - p) * (1 + p * lowest**2)) ** -0.5
    # kept as dropout keeps, so that what measures or stills dropout does so here
    kept = (dropout(ones, p) > 0).astype(input.dtype)
    return (input * kept + lowest * (1 - kept)) * scale - lowest * p * scale


def grouped_mm(
    mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """A product for each group: of three axes the first counts them, of two `offs` has their ends.

    What lies behind the last end is zero; torch does not set it.
    """
    if mat_a.ndim == 3 and mat_b.ndim == 3:
        found = ops.matmul(mat_a, mat_b)
    else:
        ends = offs.asnumpy().tolist()
        spans = [np.arange(start, end) for start, end in zip([0, *ends], ends)]
        parts = []
        for number, span in enumerate(spans):
            left = take(mat_a, 3 - mat_b.ndim, span) if mat_a.ndim == 2 else mat_a[number]
            right = take(mat_b, mat_a.ndim - 2, span) if mat_b.ndim == 2 else mat_b[number]
            parts.append(ops.matmul(left, right))
        if mat_a.ndim == mat_b.ndim:
            found = ops.stack(parts)
        else:
            axis = mat_a.ndim - 2
            rest = (mat_a if axis == 0 else mat_b).shape[axis] - ends[-1]
            if rest:
                parts.append(ops.zeros(shape_with(parts[0], axis, rest), dtype=parts[0].dtype))
            found = ops.cat(parts, axis)
    found = found if bias is None else found + bias
    return found if out_dtype is None else found.astype(out_dtype)


def einsum(equation: Any, operands: Any, *more: Any) -> Any:
    """Any einsum, two operands at a time; letters in a text, or numbers after each operand."""
    if not isinstance(equation, str):
        alternating = (equation, operands, *more)
        equation, operands, more = _as_text(*alternating), alternating[: len(more) + 1 : 2], ()
    given = (*operands, *more) if isinstance(operands, (tuple, list)) else (operands, *more)
    left, arrow, right = equation.replace(" ", "").partition("->")
    labels = _without_ellipsis(left.split(","), [t.ndim for t in given])
    seen = "".join(labels)
    digits = set([letter for letter in seen if letter.isdigit()])  # noqa: C403 - compiles so
    dots = "".join(sorted(digits, reverse=True))
    if not arrow:
        right = "..." + "".join(sorted(x for x in set(seen) if seen.count(x) == 1 and x.isalpha()))
    wanted = right.replace("...", dots)
    labels, values = _without_repeats(labels, given)
    term, result = labels[0], values[0]
    for number in range(1, len(values)):
        later = wanted + "".join(labels[number + 1 :])
        term, result = _contracted(term, result, labels[number], values[number], later)
    gone = tuple(i for i, letter in enumerate(term) if letter not in wanted)
    kept = [letter for letter in term if letter in wanted]
    return ops.transpose(sum_of(result, gone), tuple(kept.index(letter) for letter in wanted))


def _without_ellipsis(terms: Sequence[str], ranks: Sequence[int]) -> list[str]:
    """Digits, counted from the right, for the axes that "..." stands for."""
    named = []
    for term, rank in zip(terms, ranks):
        extra = rank - len(term.replace("...", ""))
        named.append(term.replace("...", "0123456789"[:extra][::-1]))
    return named


def _as_text(*alternating: Any) -> str:
    """The equation of operands that are each followed by a list of numbers."""
    spelled = [
        "".join("..." if place is Ellipsis else string.ascii_letters[place] for place in places)
        for places in (*alternating[1::2], *alternating[len(alternating) // 2 * 2 :])
    ]
    operands = len(alternating) // 2
    return "->".join([",".join(spelled[:operands]), *spelled[operands:]])


def _without_repeats(terms: Sequence[str], given: Sequence[Any]) -> tuple[list[str], list[Any]]:
    """Operands whose letter stands twice, by their diagonal."""
    single, values = [], []
    for term, value in zip(terms, given):
        while len(set(term)) < len(term):
            letter = [c for c in term if term.count(c) > 1][0]  # noqa: RUF015 - compiles so
            one = term.index(letter)
            two = term.index(letter, one + 1)
            sizes = [n if axis in (one, two) else 1 for axis, n in enumerate(value.shape)]
            on_diagonal = ops.reshape(ops.eye(value.shape[one], dtype=ms.bool_), sizes)
            kept = ops.where(on_diagonal, value, ops.zeros_like(value))
            value, term = sum_of(kept, (two,)), term[:two] + term[two + 1 :]
        single.append(term)
        values.append(value)
    return single, values


def _contracted(a: str, x: Any, b: str, y: Any, later: str) -> tuple[str, Any]:
    """Two operands as one batched matrix product; its labels and its value."""
    x = sum_of(x, tuple(i for i, c in enumerate(a) if c not in b + later))
    a = "".join(c for c in a if c in b + later)
    y = sum_of(y, tuple(i for i, c in enumerate(b) if c not in a + later))
    b = "".join(c for c in b if c in a + later)
    both = [c for c in a if c in b and c in later]
    inner = [c for c in a if c in b and c not in later]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    size = {c: _size_of(c, a, x, b, y) for c in a + b}
    x = _arranged(x, a, both, rows, inner, size)
    y = _arranged(y, b, both, inner, columns, size)
    order = [*both, *rows, *columns]
    # MindSpore's gradient of a product over one number fails: multiply, then.
    product = ops.matmul(x, y) if inner else x * y
    return "".join(order), product.reshape([size[c] for c in order])


def _size_of(letter: str, a: str, x: Any, b: str, y: Any) -> int:
    """How long a letter's axis is; an axis of one is repeated for the other operand."""
    own = y.shape[b.index(letter)] if letter in b else 1
    return own if own != 1 or letter not in a else x.shape[a.index(letter)]


def _arranged(
    x: Any, own: str, batch: list[str], rows: list[str], columns: list[str], size: dict[str, int]
) -> Any:
    moved = ops.transpose(x, tuple(own.index(c) for c in (*batch, *rows, *columns)))
    shape = [size[c] for c in (*batch, *rows, *columns)]
    if list(moved.shape) != shape:
        moved = ops.broadcast_to(moved, tuple(shape))
    counts = [math.prod(size[c] for c in group) for group in (batch, rows, columns)]
    return moved.reshape(counts)


def conv_in(dimensions: int) -> Callable[..., Any]:
    def conv(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        steps, holes = many(stride, dimensions), many(dilation, dimensions)
        edges = edges_of(padding, weight.shape[2:], holes)
        return _with_bias(_convolved(input, weight, steps, edges, holes, groups), bias, dimensions)

    return conv


def edges_of(padding: Any, kernel: Sequence[int], holes: Sequence[int]) -> list[tuple[int, int]]:
    """Padding before and after each axis."""
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding == "same":
        totals = [hole * (size - 1) for hole, size in zip(holes, kernel)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(edge, edge) for edge in many(padding, len(kernel))]


def _convolved(
    x: Any,
    weight: Any,
    steps: Sequence[int],
    edges: Sequence[tuple[int, int]],
    holes: Sequence[int],
    groups: int,
) -> Any:
    """A convolution of any number of axes; one axis as two with a flat first one."""
    batched = x.ndim == weight.ndim
    x = x if batched else ops.expand_dims(x, 0)
    flat = weight.ndim == 3
    if flat:
        x, weight = ops.expand_dims(x, 2), ops.expand_dims(weight, 2)
        steps, holes, edges = (1, *steps), (1, *holes), [(0, 0), *edges]
    run = ops.Conv3D if weight.ndim == 5 else ops.Conv2D
    pads: tuple[int, ...] = ()
    for pair in edges:  # two loops in one comprehension do not compile
        pads += tuple(pair)
    kernel = run(
        out_channel=weight.shape[0],
        kernel_size=tuple(weight.shape[2:]),
        mode=1,
        pad_mode="pad",
        pad=pads,
        stride=tuple(steps),
        dilation=tuple(holes),
        group=groups,
    )
    found = kernel(x, weight)
    found = found.squeeze(2) if flat else found
    return found if batched else found.squeeze(0)


def _with_bias(x: Any, bias: Any, dimensions: int) -> Any:
    return x if bias is None else x + bias.reshape(-1, *[1] * dimensions)


def conv_transpose_in(dimensions: int) -> Callable[..., Any]:
    def conv_transpose(
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        """As a convolution with the turned kernel of the input with gaps between its elements."""
        batched = input.ndim == weight.ndim
        x = input if batched else ops.expand_dims(input, 0)
        holes = many(dilation, dimensions)
        settings = zip(
            many(stride, dimensions),
            many(padding, dimensions),
            many(output_padding, dimensions),
            holes,
        )
        for axis, (step, edge, more, hole) in enumerate(settings, 2):
            size = x.shape[axis]
            spread = np.full((size - 1) * step + 1, -1)
            spread[::step] = np.arange(size)
            reach = hole * (weight.shape[axis] - 1)
            x = take(x, axis, _widened(spread, reach - edge, reach - edge + more), 0.0)
            weight = take(weight, axis, np.arange(weight.shape[axis])[::-1])
        own, filters = weight.shape[0] // groups, weight.shape[1]
        kernel = weight.reshape(groups, own, *weight.shape[1:])
        kernel = ops.swapaxes(kernel, 1, 2).reshape(groups * filters, own, *weight.shape[2:])
        edges = [(0, 0)] * dimensions
        found = _convolved(x, kernel, [1] * dimensions, edges, holes, groups)
        found = _with_bias(found, bias, dimensions)
        return found if batched else found.squeeze(0)

    return conv_transpose


def _widened(positions: Any, before: int, after: int) -> Any:
    """Longer by gaps at both ends, or shorter where the numbers are negative."""
    cut = positions[max(-before, 0) : len(positions) - max(-after, 0)]
    return np.pad(cut, (max(before, 0), max(after, 0)), constant_values=-1)


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Attention of queries to keys; a mask of booleans keeps where it is true.

    A query that a mask keeps from all keys gets zeros.
    """
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        heads = np.repeat(np.arange(key.shape[-3]), times)
        key, value = (take(x, x.ndim - 3, heads) for x in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2)) * factor
    is_masked = attn_mask is not None
    if is_causal:
        attn_mask = ms.Tensor(np.tril(np.ones(tuple(scores.shape[-2:]), bool)))
    if attn_mask is not None:
        if attn_mask.dtype == ms.bool_:
            scores = ops.where(attn_mask, scores, ops.full_like(scores, -np.inf))
        else:
            scores = scores + attn_mask
    weights = softmax_of_masked(scores) if is_masked else softmax_by_hand(scores, -1)
    if dropout_p:
        weights = ops.dropout(weights, dropout_p, training=True)
    return ops.matmul(weights, value)


conv1d = conv_in(1)
conv_transpose1d = conv_transpose_in(1)
conv2d = conv_in(2)
conv_transpose2d = conv_transpose_in(2)
conv3d = conv_in(3)
conv_transpose3d = conv_transpose_in(3)


def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """A convolution of time, batch, channels by a weight of time, inputs, outputs."""
    turned, kernels = ops.permute(input, (1, 2, 0)), ops.permute(weight, (2, 1, 0))
    return ops.permute(conv1d(turned, kernels, bias, 1, pad), (2, 0, 1))

"""Operators by shape and dtype, from intervals: calls, self time, spread, and what they are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from isograd.profile.analyse.kinds import MOVES, kind_of
from isograd.profile.analyse.nesting import parents, self_times
from isograd.profile.analyse.work import tensors
from isograd.profile.model import Operator, SourceOperator
from isograd.profile.spans import NONE, Codes, Ints, Spans, Strings

Mask = npt.NDArray[np.bool_]

#: Categories of Chrome traces that are operators or kernels, as torch and MindSpore write them.
OPERATOR_CATEGORIES = ("cpu_op", "kernel", "gpu_memcpy", "gpu_memset", "")
#: A mark at the beginning of names that are no operators.
MARKS = ("ProfilerStep#", "isograd::", "PyTorch Profiler", "[")


def operator_rows(spans: Spans) -> Ints:
    """Rows that are operators: by category, without steps, scopes and marks. Shape (rows,).

    returns: shape (rows,), int64.
    """
    categories = spans.numbers_of(OPERATOR_CATEGORIES)
    marks = [n for n, text in enumerate(spans.texts) if text.startswith(MARKS)]
    is_operator = np.isin(spans.category, categories) & ~np.isin(spans.name, marks)
    scopes = [n for n, track in enumerate(spans.tracks) if track.process == "Scope Layer"]
    if scopes:
        is_operator &= ~np.isin(spans.track, scopes)
    return np.flatnonzero(is_operator)


#: An operator call below this is dispatch, not work: torch's dispatch of one operator on a CPU
#: takes 2 to 8 us (measured, docs/profile.md), a kernel launch 5 to 10 us (CUDA, Ascend).
SMALL_CALL_NS = 10_000
#: Tensors this small are work for less than a microsecond, whatever the clock says on a busy
#: machine; above TINY_CALL_NS something else is done with them (a sort, a decomposition).
TINY_ELEMENTS = 1024
TINY_CALL_NS = 200_000


def tiny_types(sources: Sequence[SourceOperator]) -> frozenset[str]:
    """Types of operators that the training calls with tensors of at most TINY_ELEMENTS only."""
    known = [(one.name, tensors(one.shapes)) for one in sources]
    large = {name for name, found in known if any(math.prod(t) > TINY_ELEMENTS for t in found)}
    return frozenset(name for name, found in known if found and name not in large)


def is_dispatch(
    texts: Sequence[str],
    name: Codes,
    shapes: Codes,
    own_ns: Ints,
    tiny: frozenset[str] = frozenset(),
) -> Mask:
    """Rows whose operator is dispatch rather than work, by most of its calls with these shapes.

    One call alone does not tell: on a busy machine any of them may be interrupted for
    milliseconds. Shapes (rows,). tiny: types whose tensors are small, for traces without shapes.

    name, shapes: shape (rows,), int32: numbers of the texts.
    own_ns: shape (rows,), int64.
    returns: shape (rows,), bool.
    """
    if not name.size:
        return np.zeros(0, dtype=bool)
    used = set(np.unique(shapes).tolist())
    small = [number in used and _is_tiny(text) for number, text in enumerate(texts)]
    is_small = np.asarray([*small, False], dtype=bool)  # -1, no shape, is the last entry
    by_type = np.asarray([type_of(text) in tiny for text in texts], dtype=bool)
    is_tiny = is_small[shapes] | (by_type[name] & (shapes == NONE))
    limit = np.where(is_tiny, TINY_CALL_NS, SMALL_CALL_NS)
    key = name.astype(np.int64) * (len(texts) + 1) + shapes + 1
    _, group = numbered(key)
    short = np.bincount(group, weights=own_ns < limit)
    return np.asarray((short * 2 > np.bincount(group))[group])


def _is_tiny(text: str) -> bool:
    """Whether shapes name tensors of at most TINY_ELEMENTS elements only, or Python numbers."""
    found = tensors(readable_shapes(text))
    if not found:
        return text.startswith("[")
    return max(math.prod(shape) for shape in found) <= TINY_ELEMENTS


@dataclass(frozen=True)
class Window:
    """Which intervals count: those that begin in [begin, end) and in none of the waits for data.

    waits: disjoint ordered beginnings and ends. All in ns of the trace.
    """

    begin_ns: int
    end_ns: int
    waits: tuple[Ints, Ints]


def summarise(
    spans: Spans, window: Window | None = None, tiny: frozenset[str] = frozenset()
) -> tuple[tuple[Operator, ...], Ints]:
    """Operators by name, shapes and dtypes within a window, worst first, and self times of all.

    Self times have shape (rows,) and are nanoseconds. tiny: see is_dispatch.
    """
    rows = operator_rows(spans)
    parent = np.full(len(spans), -1, dtype=np.int64)
    found = parents(spans.track[rows], spans.start_ns[rows], spans.duration_ns[rows])
    parent[rows] = np.where(found >= 0, rows[found], -1)
    own = _fold(spans, parent, self_times(spans, parent))
    _place_kernels(spans, parent)
    is_other = np.ones(len(spans), dtype=bool)
    is_other[rows] = False
    own[is_other] = 0
    if window is not None:
        start = spans.start_ns[rows]
        within = (start >= window.begin_ns) & (start < window.end_ns)
        rows = rows[within & ~covered(start, *window.waits)]
    return _group(spans, own, parent, rows, tiny), own


def _place_kernels(spans: Spans, parent: Ints) -> None:
    """Give kernels the parent of the operator that launched them; other names, that operator."""
    if spans.owner is None:
        return
    kernel = np.flatnonzero(spans.owner != NONE)
    owner = spans.owner[kernel].astype(np.int64)
    is_same = spans.name[kernel] == spans.name[owner]
    parent[kernel] = np.where(is_same, parent[owner], owner)


def numbered(key: Ints) -> tuple[Ints, Codes]:
    """Equal keys by a number: the first place of each number, in the order of the keys, and these.

    Like np.unique with index and inverse, in a part of its memory: there are few distinct keys.

    key: shape (rows,), int64.
    returns: shape (numbers,), int64, and shape (rows,), int32.
    """
    parts = range(0, key.size, _PART)
    distinct = np.unique(np.concatenate([np.unique(key[at : at + _PART]) for at in parts]))
    first, number = np.zeros(distinct.size, np.int64), np.empty(key.size, np.int32)
    for at in reversed(parts):
        here = np.searchsorted(distinct, key[at : at + _PART])
        number[at : at + _PART] = here
        first[here[::-1]] = np.arange(at + here.size - 1, at - 1, -1)
    return first, number


#: Rows that are numbered at once.
_PART = 1 << 19


#: How CUPTI names a copy from the host to the device; what follows says whether it is pinned.
UPLOAD = "Memcpy HtoD"


def uploads(spans: Spans) -> Ints:
    """Rows of host operators that copy from the host's memory to a device.

    returns: shape (rows,), int64.
    """
    if spans.owner is None:
        return np.zeros(0, dtype=np.int64)
    copies = [n for n, text in enumerate(spans.texts) if text.startswith(UPLOAD)]
    kernel = np.flatnonzero(np.isin(spans.name, copies) & (spans.owner != NONE))
    return np.asarray(np.unique(spans.owner[kernel]), dtype=np.int64)


def covered(at: Ints, start: Ints, end: Ints) -> Mask:
    """Whether each time lies in one of the disjoint ordered intervals.

    at: shape (times,), int64 ns.
    start, end: shape (intervals,), int64 ns.
    returns: shape (times,), bool.
    """
    if not start.size:
        return np.zeros(at.size, dtype=bool)
    index = np.maximum(np.searchsorted(start, at, side="right") - 1, 0)
    return np.asarray((at >= start[index]) & (at < end[index]))


def _fold(spans: Spans, parent: Ints, own: Ints) -> Ints:
    """Give the time of a copy within a conversion or a copy to that one, as `aten::to` calls it."""
    kinds = np.asarray([kind_of(text) in MOVES for text in spans.texts], dtype=bool)
    kind = kinds[spans.name]
    for _ in range(3):  # aten::contiguous calls aten::clone calls aten::copy_
        inner = np.flatnonzero(kind & (parent >= 0) & (own > 0))
        inner = inner[kind[parent[inner]]]
        if not inner.size:
            break
        moved = np.bincount(parent[inner], own[inner], own.size).astype(np.int64)
        moved[inner] -= own[inner]
        own = own + moved
    return own


def _group(
    spans: Spans, own: Ints, parent: Ints, chosen: Ints, tiny: frozenset[str]
) -> tuple[Operator, ...]:
    """Sum up the chosen rows by name, shapes, dtypes, module, and who calls them."""
    if not chosen.size:
        return ()
    named, module, modules = _typed(spans)
    outer = _is_outer(spans, parent)
    width = len(named.texts) + 1
    key = (named.name.astype(np.int64) * width + named.shapes + 1) * width + named.dtypes + 1
    is_device = spans.is_on_device
    sends = np.zeros(len(spans), dtype=bool)
    sends[uploads(spans)] = True
    key = (((key * len(modules) + module) * 2 + outer) * 2 + is_device) * 2 + sends
    first, group = numbered(key[chosen])
    del key
    taken = own[chosen]
    small = ~is_device[chosen]
    host = chosen[small]
    small[small] = is_dispatch(
        named.texts, named.name[host], named.shapes[host], taken[small], tiny
    )
    calls = np.bincount(group)
    self_ns = np.bincount(group, weights=taken)
    total_ns = np.bincount(group, weights=spans.duration_ns[chosen])
    squares = np.bincount(group, weights=np.square(taken, dtype=np.float64))
    mean = self_ns / calls
    spread = np.sqrt(np.maximum(squares / calls - mean**2, 0.0)) / np.maximum(mean, 1.0)
    operators = []
    for index in np.argsort(-self_ns, kind="stable"):
        row = int(chosen[first[index]])
        name, shapes, dtypes = _described(named, row)
        operators.append(
            Operator(
                name=name,
                shapes=shapes,
                dtypes=dtypes,
                calls=int(calls[index]),
                self_s=float(self_ns[index]) / 1e9,
                total_s=float(total_ns[index]) / 1e9,
                spread=float(spread[index]),
                module=modules[module[row]] or None,
                device=bool(is_device[row]),
                is_upload=bool(sends[row]),
                callers=_callers(named, parent, row),
                is_outer=bool(outer[row]),
                is_dispatch=bool(small[first[index]]),
            )
        )
    return tuple(operators)


#: Operators that are the gradient of a call of the user's that moves data.
_GRADIENTS = ("ToCopyBackward", "CloneBackward", "autograd::engine::evaluate_function: ToCopy",
              "autograd::engine::evaluate_function: Clone")  # fmt: skip


def _is_outer(spans: Spans, parent: Ints) -> Mask:
    """Rows that no other operator calls, but for gradients of copies and conversions."""
    is_gradient = np.asarray([text.startswith(_GRADIENTS) for text in spans.texts], dtype=bool)
    outer = parent < 0
    inner = np.flatnonzero(~outer)
    outer[inner] = is_gradient[spans.name[parent[inner]]]
    if spans.owner is not None:
        kernel = np.flatnonzero(spans.owner != NONE)
        outer[kernel] = outer[spans.owner[kernel]]
    return np.asarray(outer)


def _callers(spans: Spans, parent: Ints, row: int) -> tuple[tuple[str, str, str], ...]:
    found: list[tuple[str, str, str]] = []
    while (row := int(parent[row])) >= 0 and len(found) < 8:
        found.append(_described(spans, row))
    return tuple(found)


def _described(spans: Spans, row: int) -> tuple[str, str, str]:
    """Name, shapes and dtypes of a row, readable."""
    shapes, dtypes = (
        "" if number == NONE else spans.texts[number]
        for number in (int(spans.shapes[row]), int(spans.dtypes[row]))
    )
    name = spans.texts[spans.name[row]]
    return name, readable_shapes(shapes), readable_dtypes(dtypes, shapes)


def _typed(spans: Spans) -> tuple[Spans, Codes, tuple[str, ...]]:
    """MindSpore's full names as types, `Default/net-Net/Cast-op3` as `Cast`; module of each row."""
    types, modules = Strings(), Strings()
    modules.number("")
    for text in spans.texts:
        types.number(text)  # so that shapes and dtypes keep their numbers
    place = np.arange(len(spans.texts), dtype=np.int32)
    module = np.zeros(len(spans.texts), dtype=np.int32)
    for number, text in enumerate(spans.texts):
        if _FULL_NAME.search(text):
            place[number] = types.number(type_of(text))
            module[number] = modules.number(module_of(text))
    renamed = replace(spans, texts=types.texts(), name=place[spans.name])
    return renamed, module[spans.name], modules.texts()


_FULL_NAME = re.compile(r"^(Default|Gradients|recompute_Default)/|-op\d+$")
_SERIAL = re.compile(r"-op\d+$")
_CLASS_SUFFIX = re.compile(r"-[A-Za-z_]\w*$")


def module_of(full_name: str) -> str:
    """The module's path in a full operator name: `Default/net-Net/conv1-Conv2d/Cast-op3`."""
    parts = full_name.split("/")[1:-1]
    return ".".join(_CLASS_SUFFIX.sub("", part) for part in parts)


def type_of(full_name: str) -> str:
    """The operator's type in a full name: `Cast`."""
    return _SERIAL.sub("", full_name.rsplit("/", 1)[-1])


@lru_cache(maxsize=4096)
def readable_shapes(text: str) -> str:
    """`[[2, 3], [], []]` as `2×3`: torch's lists without what is no tensor."""
    if not text:
        return ""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, dict):  # MindInsight: {"format": …, "data_type": …, "shape": …}
        return str(value.get("shape", ""))
    if not isinstance(value, list):
        return text
    return ", ".join(found for found in map(_shape, value) if found)


def _shape(value: object) -> str:
    if not isinstance(value, list) or not value:
        return ""
    if all(isinstance(part, int) for part in value):
        return "×".join(map(str, value))
    return "(" + ", ".join(filter(None, map(_shape, value))) + ")"


_DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "long int": "int64", "int": "int32", "bool": "bool", "unsigned char": "uint8",
}  # fmt: skip


@lru_cache(maxsize=4096)
def readable_dtypes(text: str, shapes: str = "") -> str:
    """`["float", "", "Scalar"]` as `float32`: the dtypes of tensors, each once, in order.

    Tensors without axes are left out: a Python number in an expression is one, in float64.
    """
    if not text:
        return ""
    try:
        value, axes = json.loads(text), json.loads(shapes or "null")
    except ValueError:
        return text
    if not isinstance(value, list):
        return str(value)
    if isinstance(axes, list) and len(axes) == len(value):
        value = [part for part, axis in zip(value, axes, strict=True) if axis]
    flat = [str(part) for part in value]
    return ", ".join(dict.fromkeys(_DTYPES[part] for part in flat if part in _DTYPES))

"""Operators by shape and dtype, from intervals: calls, self time, spread, and what they are."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache

import numpy as np

from isograd.profile.analyse.kinds import Kind, kind_of
from isograd.profile.analyse.nesting import parents, self_times
from isograd.profile.model import NONE, Codes, Ints, Operator, Spans, Strings

#: Categories of Chrome traces that are operators or kernels, as torch and MindSpore write them.
OPERATOR_CATEGORIES = ("cpu_op", "kernel", "gpu_memcpy", "gpu_memset", "")
#: A mark at the beginning of names that are no operators.
_MOVES = {Kind.CONVERSION: 1, Kind.COPY: 1}
MARKS = ("ProfilerStep#", "isograd::", "PyTorch Profiler", "[")


def operator_rows(spans: Spans) -> Ints:
    """Rows that are operators: by category, without steps, scopes and marks. Shape (rows,)."""
    categories = spans.numbers_of(OPERATOR_CATEGORIES)
    marks = [n for n, text in enumerate(spans.texts) if text.startswith(MARKS)]
    is_operator = np.isin(spans.category, categories) & ~np.isin(spans.name, marks)
    scopes = [n for n, track in enumerate(spans.tracks) if track.process == "Scope Layer"]
    if scopes:
        is_operator &= ~np.isin(spans.track, scopes)
    return np.flatnonzero(is_operator)


def summarise(
    spans: Spans, begin_ns: int | None = None, end_ns: int | None = None
) -> tuple[tuple[Operator, ...], Ints]:
    """Operators by name, shapes and dtypes within a time, worst first, and self times of all rows.

    Self times have shape (rows,) and are nanoseconds.
    """
    rows = operator_rows(spans)
    parent = parents(spans.track[rows], spans.start_ns[rows], spans.duration_ns[rows])
    inner = _select(spans, rows)
    own = _fold(inner, parent, self_times(inner, parent))
    everything = np.zeros(len(spans), dtype=np.int64)
    everything[rows] = own
    if begin_ns is not None and end_ns is not None:
        within = (inner.start_ns >= begin_ns) & (inner.start_ns < end_ns)
        inner, own = _select(inner, np.flatnonzero(within)), own[within]
    return _group(inner, own), everything


def _fold(spans: Spans, parent: Ints, own: Ints) -> Ints:
    """Give the time of a copy within a conversion or a copy to that one, as `aten::to` calls it."""
    kinds = np.asarray([_MOVES.get(kind_of(text), 0) for text in spans.texts], dtype=np.int8)
    kind = kinds[spans.name]
    for _ in range(3):  # aten::contiguous calls aten::clone calls aten::copy_
        inner = np.flatnonzero((kind > 0) & (parent >= 0) & (own > 0))
        inner = inner[kind[parent[inner]] > 0]
        if not inner.size:
            break
        moved = np.bincount(parent[inner], own[inner], own.size).astype(np.int64)
        moved[inner] -= own[inner]
        own = own + moved
    return own


def _select(spans: Spans, rows: Ints) -> Spans:
    columns = ("name", "category", "track", "start_ns", "duration_ns", "shapes", "dtypes")
    chosen = {name: getattr(spans, name)[rows] for name in columns}
    chosen["external"] = chosen["sequence"] = np.zeros(0, dtype=np.int64)  # not looked at here
    return Spans(texts=spans.texts, tracks=spans.tracks, **chosen)


def _group(spans: Spans, own: Ints) -> tuple[Operator, ...]:
    if not len(spans):
        return ()
    spans, module, modules = _typed(spans)
    width = len(spans.texts) + 1
    key = (spans.name.astype(np.int64) * width + spans.shapes + 1) * width + spans.dtypes + 1
    key = key * len(modules) + module
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    calls = np.bincount(group)
    self_ns = np.bincount(group, weights=own)
    total_ns = np.bincount(group, weights=spans.duration_ns)
    squares = np.bincount(group, weights=own.astype(np.float64) ** 2)
    mean = self_ns / calls
    spread = np.sqrt(np.maximum(squares / calls - mean**2, 0.0)) / np.maximum(mean, 1.0)
    is_device = np.asarray([track.is_device for track in spans.tracks])
    operators = []
    for index in np.argsort(-self_ns, kind="stable"):
        row = int(first[index])
        operators.append(
            Operator(
                name=spans.texts[spans.name[row]],
                shapes=_shapes(spans, int(spans.shapes[row])),
                dtypes=_dtypes(spans, int(spans.dtypes[row])),
                calls=int(calls[index]),
                self_s=float(self_ns[index]) / 1e9,
                total_s=float(total_ns[index]) / 1e9,
                spread=float(spread[index]),
                module=modules[module[row]] or None,
                device=bool(is_device[spans.track[row]]),
            )
        )
    return tuple(operators)


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


def _shapes(spans: Spans, number: int) -> str:
    return "" if number == NONE else readable_shapes(spans.texts[number])


def _dtypes(spans: Spans, number: int) -> str:
    return "" if number == NONE else readable_dtypes(spans.texts[number])


@lru_cache(maxsize=4096)
def readable_shapes(text: str) -> str:
    """`[[2, 3], [], []]` as `2×3`: torch's lists without what is no tensor."""
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
def readable_dtypes(text: str) -> str:
    """`["float", "", "Scalar"]` as `float32`: the dtypes of tensors, each once, in order."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, list):
        return str(value)
    flat = [str(part) for part in value]
    return ", ".join(dict.fromkeys(_DTYPES[part] for part in flat if part in _DTYPES))

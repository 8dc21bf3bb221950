"""Inputs and targets that are written nowhere: what first layers and losses can take."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from isograd.frameworks.base import ModuleInfo, Structure
from isograd.tensors import TensorValue
from isograd.verify.arguments import TensorSpec

#: Edges of an image and lengths of a sequence that are tried, small ones first.
_EDGES = (32, 28, 64, 96, 128, 224, 299)
_LENGTHS = (16, 8, 64, 128)
_NUMBER = re.compile(r"\d+")
_BATCH = 2
_FEATURES = ("in_features", "normalized_shape")


def input_candidates(structure: Structure, consumer: str | None) -> list[TensorSpec]:
    """What the argument may be that goes into this module; None for the network's first layer."""
    prefix = consumer or ""
    inside = [m for m in structure.modules if m.name == prefix or m.name.startswith(f"{prefix}.")]
    for module in inside if prefix else structure.modules:
        found = _of_layer(module)
        if found:
            return found
    return [TensorSpec((_BATCH, 3, edge, edge)) for edge in _EDGES] if not prefix else []


def _of_layer(module: ModuleInfo) -> list[TensorSpec]:
    given = module.arguments
    kind = module.kind
    if kind == "Embedding":
        most = int(given.get("num_embeddings", 2))
        return [TensorSpec((_BATCH, n), "int64", "integers", low=0, high=most) for n in _LENGTHS]
    if kind in ("LSTM", "GRU", "RNN"):
        sizes = _NUMBER.findall(module.settings)
        return [TensorSpec((_BATCH, 8, int(sizes[0])))] if sizes else []
    if kind == "MultiheadAttention":
        return [TensorSpec((_BATCH, 8, int(given["embed_dim"])))] if "embed_dim" in given else []
    channels = given.get("in_channels", given.get("num_features", given.get("num_channels")))
    if isinstance(channels, int):
        return _of_channels(kind, channels)
    features = next((given[key] for key in _FEATURES if key in given), None)
    if isinstance(features, int):
        return _of_features(features)
    if isinstance(features, tuple) and all(isinstance(n, int) for n in features):
        return [TensorSpec((_BATCH, 8, *features)), TensorSpec((_BATCH, *features))]
    return []


def _of_channels(kind: str, channels: int) -> list[TensorSpec]:
    axes = next((n for n in (1, 2, 3) if f"{n}d" in kind), 2)
    edges: Sequence[int] = _EDGES if axes == 2 else (64, 256, 1024) if axes == 1 else (16, 32, 64)
    shapes = [(_BATCH, channels, *[edge] * axes) for edge in edges]
    if "BatchNorm1d" in kind:
        shapes.insert(0, (_BATCH, channels))
    return [TensorSpec(shape) for shape in shapes]


def _of_features(features: int) -> list[TensorSpec]:
    """A row of features, a sequence of rows, or an image that is flattened before."""
    shapes: list[tuple[int, ...]] = [(_BATCH, features), (_BATCH, 8, features)]
    for channels in (1, 3):
        edge = math.isqrt(features // channels)
        if channels * edge * edge == features:
            shapes.append((_BATCH, channels, edge, edge))
    return [TensorSpec(shape) for shape in shapes]


def target_candidates(outputs: Sequence[TensorValue], kind: str) -> list[TensorSpec]:
    """What the target of a loss may be, by the network's outputs; the loss's own kind first.

    outputs: any shapes and dtypes.
    """
    classes: list[TensorSpec] = []
    like: list[TensorSpec] = []
    shares: list[TensorSpec] = []
    for output in outputs[:3]:
        shape = output.shape
        if len(shape) >= 2:
            by_axis = [(shape[:1] + shape[2:], shape[1]), (shape[:-1], shape[-1])]
            for rest, count in dict.fromkeys(by_axis):
                classes.append(TensorSpec(rest, "int64", "integers", low=0, high=max(1, count)))
        like.append(TensorSpec(shape))
        shares.append(TensorSpec(shape, fill="uniform"))
        if len(shape) == 2 and shape[1] == 1:
            like.append(TensorSpec(shape[:1]))
            shares.append(TensorSpec(shape[:1], fill="uniform"))
    order = {"classes": classes, "like_output": like, "shares": shares}
    first = order.pop(kind, [])
    return [*first, *(spec for specs in order.values() for spec in specs)]

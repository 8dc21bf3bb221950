"""Guesses the inputs of a network from its first layer, by trying them in torch.

    python probe.py CASE_FOLDER

Prints one line of JSON: {"inputs": [[shape, dtype, low, high], ...]} or {"problem": "..."}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

#: Edges of an image that are tried, smallest first; larger ones are for networks of fixed size.
EDGES = (64, 96, 128, 192, 224, 256, 299, 384)
LENGTHS = (16, 64, 128)


def candidates(model: Any) -> list[tuple[tuple[int, ...], str, int]]:
    """Shapes, dtypes and exclusive upper bounds that the first layer can take."""
    for layer in model.modules():
        weight = getattr(layer, "weight", None)
        if not isinstance(weight, torch.Tensor) or next(layer.children(), None) is not None:
            continue
        kind = type(layer)
        channels = int(getattr(layer, "in_channels", 0) or getattr(layer, "num_features", 0))
        if issubclass(kind, (torch.nn.Conv2d, torch.nn.BatchNorm2d)):
            return [((2, channels, edge, edge), "float32", 0) for edge in EDGES]
        if issubclass(kind, torch.nn.Conv1d):
            return [((2, channels, length), "float32", 0) for length in (64, 256, 1024)]
        if issubclass(kind, torch.nn.Conv3d):
            return [((2, channels, 8, edge, edge), "float32", 0) for edge in (32, 64, 112)]
        if issubclass(kind, torch.nn.Embedding):
            most = layer.num_embeddings
            return [((2, length), "int64", most) for length in LENGTHS]
        if issubclass(kind, torch.nn.Linear):
            features = layer.in_features
            images = [((2, 3, edge, edge), "float32", 0) for edge in EDGES]
            return [((2, features), "float32", 0), ((2, 8, features), "float32", 0), *images]
        if issubclass(kind, torch.nn.RNNBase):
            return [((8, 2, layer.input_size), "float32", 0)]
        if issubclass(kind, torch.nn.LayerNorm):
            return [((2, 8, *layer.normalized_shape), "float32", 0)]
    return []


def tried(model: Any) -> dict[str, Any]:
    """The first candidate with which the network runs forward."""
    said = "its first layer is of no kind that isograd knows"
    for shape, dtype, most in candidates(model):
        if most:
            tensor = torch.randint(0, most, shape)
        else:
            tensor = torch.randn(shape)
        try:
            with torch.no_grad():
                model(tensor)
        except Exception as error:
            said = f"with {tuple(shape)} it said {type(error).__name__}: {str(error)[:200]}"
            continue
        return {"inputs": [[list(shape), dtype, 0, most]]}
    return {"problem": said}


def main() -> None:
    """Answer for the case in the folder."""
    sys.path.insert(0, sys.argv[1])
    import reference_side  # type: ignore[import-not-found]

    torch.manual_seed(0)
    # In training mode a batch of one image with one pixel left fails, as it should.
    answer = tried(reference_side.build().train())
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()

"""Resizing by one matrix for each axis: kernels and coordinates that torch does not have."""

from __future__ import annotations

from typing import Any

from isograd.diagnose.hypothesis import Call, Values


def _places(size: int, wanted: int, coordinates: str) -> Any:
    """Where the centres of the wanted pixels lie among the given ones."""
    import torch

    steps = torch.arange(wanted, dtype=torch.float64)
    if coordinates == "align_corners":
        return steps * ((size - 1) / (wanted - 1) if wanted > 1 else 0.0)
    if coordinates in ("asymmetric", "up"):
        return steps * (size / wanted)
    return (steps + 0.5) * (size / wanted) - 0.5


def _weights(size: int, wanted: int, values: Values, align: bool) -> Any:
    """Each wanted pixel as weights of the given ones."""
    import torch

    kernel = values["kernel"]
    place = _places(
        size, wanted, values.get("coordinates", "align_corners" if align else "half-pixel")
    )
    if kernel == "nearest":
        small = 1e-9
        rounded = {
            "align_corners": torch.floor(place + 0.5),
            "half-pixel, down": torch.ceil(place - 0.5 - small),
            "up": torch.ceil(place - small),
        }[values["coordinates"]]
        return torch.nn.functional.one_hot(rounded.long().clamp(0, size - 1), size).double()
    reach = 2 if kernel == "cubic" else 1
    below = torch.floor(place)
    result = torch.zeros(wanted, size, dtype=torch.float64)
    for offset in range(1 - reach, reach + 1):
        index = (below + offset).long()
        if reach == 2:
            apart = place - below
            if "table" in values:
                apart = torch.round(apart * values["table"]) / values["table"]
            weight = _cubic((apart - offset).abs(), values["coefficient"])
        else:
            weight = (1 - (place - below - offset).abs()).clamp(0)
        if values.get("inside"):
            weight = torch.where((index >= 0) & (index < size), weight, torch.zeros_like(weight))
        result.scatter_add_(1, index.clamp(0, size - 1)[:, None], weight[:, None])
    return result / result.sum(1, keepdim=True)


def _cubic(x: Any, a: float) -> Any:
    import torch

    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return torch.where(x <= 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def resized(call: Call, values: Values) -> Any:
    """The input through one matrix for each axis."""
    x = call["input"]
    result = x
    for axis, wanted in enumerate(call.run().shape[2:], start=2):
        matrix = _weights(x.shape[axis], wanted, values, bool(call.arguments.get("align_corners")))
        result = (result.transpose(axis, -1) @ matrix.to(x.dtype).t()).transpose(axis, -1)
    return result

"""What the names mean with which compiled steps are written, and which no import binds yet."""

from __future__ import annotations

from isograd.convert.training.names import SPELLED
from isograd.scan.values import TENSOR, TENSORS, Foreign, Returns, Value

WRITTEN: dict[str, Value] = {
    **{name: Foreign(said.replace("ms.", "mindspore.", 1)) for name, said in SPELLED.items()},
    "_isograd_sum": Returns(TENSOR),
    "_isograd_grad": Returns(Returns(TENSOR)),
    "_isograd_grads": Returns(Returns(TENSORS)),
}

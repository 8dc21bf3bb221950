"""What of MindSpore's takes no float64, in projects whose networks are of it."""

from __future__ import annotations

#: What makes networks and tensors of float64 where no dtype is written.
DOUBLES = frozenset(
    "torch.nn.Module.double torch.set_default_dtype torch.set_default_tensor_type".split()
)
#: By MindSpore's names, the runtime's functions and layers that take it.
INSTEAD_OF_SINGLES = {
    "ops.relu6": "composites.relu6",
    "ops.prelu": "composites.prelu",
    "ops.hardshrink": "composites.hardshrink",
    "ops.softshrink": "composites.softshrink",
    "ops.log_softmax": "composites.log_softmax",  # which is rough in MindSpore
    "ops.l1_loss": "composites.l1_loss",  # which computes in float32 in MindSpore if one is
    "nn.BCELoss": "composites.BCELoss",
    "nn.HShrink": "composites.Hardshrink",
    "nn.SoftShrink": "composites.Softshrink",
    "nn.ReLU6": "composites.ReLU6",
}

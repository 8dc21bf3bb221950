"""What of MindSpore's takes no float64, in projects that name it."""

from __future__ import annotations

#: What makes float64, or asks for it.
DOUBLES = frozenset(
    "torch.float64 torch.double torch.DoubleTensor torch.Tensor.double torch.nn.Module.double"
    " torch.set_default_dtype".split()
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

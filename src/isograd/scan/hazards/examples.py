"""The frames that the examples of hazards stand in."""

from __future__ import annotations

#: Where most of the reasons come from.
GUIDE = "MindSpore migration guide, model analysis and preparation"
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def forward(*lines: str, before: str = "") -> str:
    """A network whose forward holds these lines."""
    body = "\n".join(f"        {line}" for line in lines)
    return f"{HEAD}{before}class Net(nn.Module):\n    def forward(self, x, mask):\n{body}\n"


def script(*lines: str) -> str:
    return HEAD + "\n".join(lines) + "\n"


def body(*lines: str) -> str:
    return HEAD + "class Net(nn.Module):\n" + "\n".join(f"    {line}" for line in lines) + "\n"

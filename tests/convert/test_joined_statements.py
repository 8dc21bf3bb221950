"""Statements that semicolons join: what is left out goes without a trace, the others stay."""

from __future__ import annotations

import pytest
from tests.convert.support import port_of

_USES = "\n\ndef f(x):\n    return F.relu(torch.abs(x)), nn.ReLU()(x)\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import torch; import torch.nn as nn", None),
        ("import torch; import torch.nn as nn;", None),
        ("import torch; import torch.nn as nn  # both", "# both"),
        ("import os; import torch; import math; import torch.nn as nn", "import os; import math"),
        ("import torch; from torch import nn; x = 3", "x = 3"),
        ("x = 3; import torch; from torch import nn", "x = 3"),
        ("if True: import torch; import os", "if True: import os"),
        ("if True: import torch; import torch.nn", "if True: pass"),
    ],
)
def test_imports_of_one_line(line: str, expected: str | None) -> None:
    start = "import torch.nn as nn\nimport torch.nn.functional as F\nimport torch\n"
    text, findings = port_of(f"{start}{line}{_USES}")
    lines = text.partition("\n\ndef")[0].splitlines()
    assert not findings
    assert lines == [
        "import mindspore as ms" if "ms." in text else "from mindspore import nn, ops",
        *([expected] if expected else []),
    ]


def test_statements_of_one_line() -> None:
    code = """
    import torch

    def f(x: torch.Tensor):
        import torch; y = torch.abs(x); torch.backends.cudnn.benchmark = True; z = y + 1; import os
        torch.backends.cudnn.enabled = True; torch.backends.cudnn.benchmark = True
        return z, os
    """
    text, findings = port_of(code)
    assert not findings
    assert "    y = ops.abs(x); z = y + 1; import os\n    return z, os\n" in text

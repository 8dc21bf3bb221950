"""Ports that ask for the static graph themselves: jit_class, GRAPH_MODE, mixed precision."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.verify.test_compiled import REFERENCE, block, stage_alone

from isograd.model import Severity

GRAPH = "import mindspore as ms\nms.set_context(mode=ms.GRAPH_MODE)\n"
PAIR = """import mindspore as ms
@ms.jit_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
SCALES = Pair(1.0, 1.0)
"""
AMP = "from mindspore import amp\n"
PLAIN = "y = ops.tanh(self.fc(x))", "return y + x"
EXTENDED = "ys = [ops.tanh(self.fc(x))]; ys.extend([x])", "return ys[0] + ys[1]"
TWO_LOOPS = "ys = [y for y in [ops.tanh(self.fc(x))] for _ in range(1)]", "return ys[0] + x"


@pytest.mark.parametrize(
    ("lines", "decorator", "before", "built", "codes"),
    [
        pytest.param(
            ("p = Pair(ops.tanh(self.fc(x)), x)", "return p.a + p.b"), "@jit", PAIR, "Net()",
            {"compiled.refused"}, id="jit_class made of tensors",
        ),
        pytest.param(
            ("y = ops.tanh(self.fc(x)) * SCALES.a", "return y + x * SCALES.b"), "@jit", PAIR,
            "Net()", set(), id="jit_class of constants",
        ),
        pytest.param(
            TWO_LOOPS, "", GRAPH, "Net()", {"compiled.refused"}, id="GRAPH_MODE refuses"
        ),
        pytest.param(
            EXTENDED, "", GRAPH, "Net()", {"compiled.gradient-lost"},
            id="GRAPH_MODE loses a gradient",
        ),
        pytest.param(PLAIN, "", GRAPH, "Net()", set(), id="GRAPH_MODE takes it"),
        pytest.param(
            EXTENDED, "@jit", AMP, 'amp.auto_mixed_precision(Net(), "O0")',
            {"compiled.gradient-lost"}, id="jit under mixed precision loses a gradient",
        ),
        pytest.param(
            PLAIN, "@jit", AMP, 'amp.auto_mixed_precision(Net(), "O0")', set(),
            id="jit under mixed precision",
        ),
    ],
)  # fmt: skip
def test_what_a_port_asks_for_is_run_as_it_is_written(
    tmp_path: Path,
    lines: tuple[str, str],
    decorator: str,
    before: str,
    built: str,
    codes: set[str],
) -> None:
    port = before + block(*lines, decorator).replace("return Net()", f"return {built}")
    found, _ = stage_alone(tmp_path, REFERENCE, port)
    assert {finding.code for finding in found.findings} == codes
    assert all(finding.severity is Severity.EFFECTIVE for finding in found.findings)
    assert bool(found.asks)

"""docs/hypotheses.md says what the library holds, and the library holds the contract's causes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import isograd
from isograd.diagnose.documentation import known_ids, page
from isograd.diagnose.other_causes import OTHER_SOURCES, Source

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hypotheses.md"
#: The contract's cause ids of the stages forward, loss, backward and update, and of the data.
CAUSES = """
    batch_norm.eps batch_norm.momentum batch_norm.unbiased batch_norm.mode batch_norm.running_stats
    layer_norm.eps layer_norm.unbiased layer_norm.bias layer_norm.axes group_norm.eps
    group_norm.groups rms_norm.eps conv.padding conv.padding_mode conv.stride conv.dilation
    conv.groups conv.bias linear.bias linear.transposed max_pool.padding avg_pool.padding
    avg_pool.count_include_pad pool.ceil_mode interpolate.align_corners interpolate.mode
    interpolate.antialias gelu.approximate leaky_relu.negative_slope activation.kind softmax.axis
    attention.scale attention.mask attention.qkv_order attention.causal rotary.layout
    position.offset embedding.scale embedding.padding_idx cat.order cat.axis dropout.active
    dropout.p rnn.gate_order rnn.bias rnn.batch_first rnn.direction residual.missing precision.cast
    loss.reduction loss.label_smoothing loss.ignore_index loss.weight loss.shift optimizer.lr
    optimizer.schedule optimizer.momentum optimizer.dampening optimizer.nesterov optimizer.betas
    optimizer.eps optimizer.bias_correction optimizer.weight_decay optimizer.decoupled
    optimizer.no_decay optimizer.clip optimizer.frozen gradient.stopped gradient.scale data.scale
    data.channel_order data.normalize data.resize data.order
""".split()


def test_the_page_is_up_to_date(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--refresh-goldens"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/hypotheses.md is old: run pytest --refresh-goldens and review it"
    )


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_of_the_contract_can_be_named(cause: str) -> None:
    assert cause in known_ids()


@pytest.mark.parametrize("source", OTHER_SOURCES, ids=lambda source: f"{source.id}-{source.file}")
def test_other_sources_hold_their_cause(source: Source) -> None:
    text = (Path(isograd.__file__).parent / source.file).read_text(encoding="utf-8")
    assert f'"{source.id}"' in text


def test_the_page_needs_no_framework() -> None:
    code = (
        "import sys; from isograd.diagnose.documentation import page; page(); "
        "print([name for name in ('torch', 'mindspore') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "[]", result.stderr

"""Reports made by hand: one of each verdict, and one whose names are hostile."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from isograd.edits import SourceEdit
from isograd.model import (
    Attempt,
    CallDiagnosis,
    Cause,
    ComparedTensor,
    DiagnoseReport,
    Evidence,
    Finding,
    Fix,
    Gap,
    LossCurves,
    ModuleRatio,
    PlacedCause,
    Severity,
    Side,
    Stage,
    StageDiagnosis,
    StageResult,
    StageVerdict,
    Verdict,
    VerifyReport,
)

REFERENCE = Side("torch", "2.13.0", "3.11.7", "cpu", ("deterministic algorithms", "1 thread"))
AXIS = SourceEdit("/net_mindspore.py", 88, 15, "ops.softmax(x, 1)", "ops.softmax(x, -1)")
PORT = Side("mindspore", "2.10.0", "3.11.7", "CPU")


def _stages(*verdicts: StageVerdict, detail: str = "") -> tuple[StageResult, ...]:
    skipped = [StageVerdict.SKIPPED] * (len(Stage) - len(verdicts))
    return tuple(
        StageResult(stage, verdict, 0 if verdict is StageVerdict.SKIPPED else 161, 0.42, detail)
        for stage, verdict in zip(Stage, [*verdicts, *skipped], strict=True)
    )


def _modules(ratio: float) -> tuple[ModuleRatio, ...]:
    return (
        ModuleRatio("", "ResNet", "", Stage.FORWARD, 0.7, "train"),
        ModuleRatio("conv1", "Conv2d", "conv1", Stage.FORWARD, 0.11, "train"),
        ModuleRatio("layer1.0.bn1", "BatchNorm2d", "layer1.0.norm1", Stage.FORWARD, ratio, "train"),
        ModuleRatio("layer1.0.bn1", "BatchNorm2d", "layer1.0.norm1", Stage.BACKWARD, 0.3, "train"),
        ModuleRatio("layer1.0.relu", "ReLU", None, Stage.FORWARD, None),
        ModuleRatio("fc", "Linear", "fc", Stage.FORWARD, 0.2, "train"),
    )


@pytest.fixture
def equivalent_report() -> VerifyReport:
    return VerifyReport(
        verdict=Verdict.EQUIVALENT,
        case="examples/resnet50/faithful.toml",
        reference=REFERENCE,
        port=PORT,
        stages=_stages(
            *[StageVerdict.EQUIVALENT] * len(Stage), detail="worst 0.71 × the noise, at conv1"
        ),
        findings=(),
        gaps=(),
        modules=_modules(0.71),
        losses=LossCurves((6.91, 6.5, 6.1), (6.91, 6.5, 6.1), (0.0, 0.001, 0.002), None),
        notes=("torch ran on one thread.",),
        elapsed_s=31.25,
        thresholds={"envelope_factor": 8.0},
    )


@pytest.fixture
def first_finding() -> Finding:
    """The example of the style guide."""
    return Finding(
        code="forward.output",
        severity=Severity.EFFECTIVE,
        stage=Stage.FORWARD,
        module="encoder.layer.3.attn",
        message="outputs differ",
        ratio=41_234.0,
        evidence=Evidence("output", 12, 98_304, (0, 17, 5), 3.1e-2, 7.5e-7),
        cause=Cause(
            "softmax.axis",
            reference="-1",
            port="1",
            alpha=1.0,
            interval=(0.99, 1.01),
            proved=True,
            text="softmax over axis 1 instead of -1",
        ),
        fix=Fix("", "net_mindspore.py:88", (AXIS,)),
    )


@pytest.fixture
def divergent_report(equivalent_report: VerifyReport, first_finding: Finding) -> VerifyReport:
    batch_norm = Finding(
        code="forward.output",
        severity=Severity.EFFECTIVE,
        stage=Stage.FORWARD,
        module="layer1.0.bn1",
        message="outputs differ",
        ratio=959.0,
        mode="train",
        evidence=Evidence(
            "output", 4096, 8192, (0, 0, 0), 2e-3, 2.1e-6, (1, 3, 2), 0.512345678, 0.498
        ),
        cause=Cause(
            "batch_norm.eps",
            1e-05,
            0.001,
            1.0,
            (0.99, 1.01),
            False,
            ("batch_norm.unbiased",),
            "batch_norm with eps 0.001 instead of 1e-05",
        ),
        fix=Fix("set eps=1e-05", "net_mindspore.py:41"),
    )
    missing = Finding(
        code="parameter.missing",
        severity=Severity.MASKED,
        stage=Stage.BACKWARD,
        module="fc",
        message="the bias has no gradient in the port",
        evidence=Evidence("bias", 10, 10, (0,), math.inf, 1e-7),
    )
    quiet = Finding(
        code="forward.noise",
        severity=Severity.BELOW_NOISE,
        stage=Stage.INFERENCE,
        module="",
        message="eps differs",
        ratio=0.02,
        cause=Cause("layer_norm.eps", 1e-05, 1e-06, 0.99, (0.8, 1.18), True),
    )
    verdicts = (
        StageVerdict.EQUIVALENT,
        StageVerdict.DIVERGENT,
        StageVerdict.EQUIVALENT,
        StageVerdict.DIVERGENT,
        StageVerdict.ERROR,
        StageVerdict.SKIPPED,
        StageVerdict.EQUIVALENT,
    )
    return replace(
        equivalent_report,
        verdict=Verdict.DIVERGENT,
        case="examples/bert/guide.toml",
        stages=_stages(*verdicts, detail="see below"),
        findings=(first_finding, batch_norm, missing, quiet),
        gaps=(Gap(Stage.UPDATE, "optimizer", "the port's worker ended with status 11"),),
        modules=(
            *_modules(959.0),
            ModuleRatio("encoder.layer.3.attn", "Attention", None, Stage.FORWARD, 41_234.0),
        ),
        losses=LossCurves(
            tuple(7 - step / 20 for step in range(30)),
            tuple(7 - step / 25 for step in range(30)),
            tuple(float(step) for step in range(30)),
            5,
        ),
    )


@pytest.fixture
def incomplete_report(equivalent_report: VerifyReport) -> VerifyReport:
    return replace(
        equivalent_report,
        verdict=Verdict.INCOMPLETE,
        gaps=(Gap(Stage.FORWARD, "layer4.2.drop", "no module of the port corresponds to it"),),
        losses=None,
    )


HOSTILE = "</script><script>alert('x')</script>[red]&\x1b[31m\n\u202e\ud800"


@pytest.fixture
def hostile_report(divergent_report: VerifyReport, first_finding: Finding) -> VerifyReport:
    finding = replace(
        first_finding,
        module=HOSTILE,
        message=HOSTILE,
        evidence=Evidence(HOSTILE, 0, 0, None, math.nan, 0.0, (0,), math.nan, -math.inf, HOSTILE),
        cause=Cause(HOSTILE, HOSTILE, math.nan, math.nan, (math.nan, math.inf), False, (HOSTILE,)),
        fix=Fix(HOSTILE, HOSTILE),
        ratio=math.inf,
    )
    side = Side(HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,))
    return replace(
        divergent_report,
        case=HOSTILE,
        reference=side,
        port=side,
        stages=_stages(*[StageVerdict.DIVERGENT] * len(Stage), detail=HOSTILE),
        findings=(finding, *[replace(finding, severity=severity) for severity in Severity]),
        gaps=(Gap(Stage.FORWARD, HOSTILE, HOSTILE),),
        modules=(ModuleRatio(HOSTILE, HOSTILE, HOSTILE, Stage.FORWARD, math.nan, HOSTILE),),
        notes=(HOSTILE,),
        losses=LossCurves((1.0, math.nan), (math.inf, 1.0), (math.nan, math.inf), 1),
        thresholds={HOSTILE: math.inf},
    )


EPS = "batch normalisation with eps 0.001 instead of 1e-05"


def _attempt(id: str, text: str, ratio: float, alpha: float, reason: str) -> Attempt:
    reach = 0.01 if abs(alpha) < 5 else 3.0
    interval = (alpha - reach, alpha + reach)
    return Attempt(id, text, "norm", "batch_norm", ratio, alpha, interval, not reason, reason)


@pytest.fixture
def diagnosed_report() -> DiagnoseReport:
    """A module that differs for a known reason, with a second call that could not be judged."""
    attempts = (
        replace(_attempt("batch_norm.eps", EPS, 0.74, 1.0, ""), is_named=True),
        _attempt("batch_norm.mode", "by its running statistics", 2.0, 0.99, ""),
        _attempt("norm.kind", "of the kind instance", 290_000, 0.0, "residual left, alpha not 1"),
        _attempt("conv.bias", "without its bias", math.inf, math.nan, "projection says nothing"),
        _attempt("batch_norm.unbiased", "over n - 1", 13_000, 13.0, "residual left, alpha not 1"),
    )
    cause = Cause(
        "batch_norm.eps", 1e-05, 0.001, 1.0, (0.99, 1.01), True, ("batch_norm.mode",), EPS
    )
    fix = Fix("nn.BatchNorm2d(16, eps=1e-3) → nn.BatchNorm2d(16, eps=1e-05)", "net.py:48")
    placed = PlacedCause(cause, "norm", "batch_norm", (0.00099996, 0.00100003))
    stage = StageDiagnosis(
        Stage.FORWARD, Severity.EFFECTIVE, 14_000.0, 0.74, (placed,), attempts, fix
    )
    evidence = Evidence("output 0", 60, 64, (0, 0), 1.7e-3, 1.2e-7)
    tensors = (
        ComparedTensor(Stage.BACKWARD, "gradient of bias", False, 0.065, evidence),
        ComparedTensor(Stage.FORWARD, "output 0", True, 14_000.0, evidence),
        ComparedTensor(Stage.FORWARD, "output 1", True, None, problem="shape (2,) instead of (3,)"),
    )
    unknown = StageDiagnosis(
        Stage.FORWARD,
        Severity.EFFECTIVE,
        9.0,
        None,
        (),
        (),
        Fix("the port builds this module here", "net.py:48"),
    )
    calls = (
        CallDiagnosis("call 1 of 3", ("norm.inner", "other"), tensors, (stage,)),
        CallDiagnosis(
            "call 2 of 3", (), tensors[:2], (unknown,), note="the first function to differ is mul"
        ),
        CallDiagnosis("call 3 of 3", failure="construct() raised ValueError"),
    )
    dropout = Finding(
        "forward.dropout", Severity.MASKED, Stage.FORWARD, "norm", "dropout zeroes 50.0%"
    )
    return DiagnoseReport(
        Verdict.DIVERGENT,
        "case.toml",
        "norm",
        "BatchNorm2d",
        "stem.1",
        "train",
        REFERENCE,
        PORT,
        calls,
        (dropout,),
        ("2 calls differ; hypotheses were tried on the 2 worst",),
        7,
        3.21,
        {"isolated": 8.0},
    )


@pytest.fixture
def agreeing_report(diagnosed_report: DiagnoseReport) -> DiagnoseReport:
    call = diagnosed_report.calls[0]
    stage = replace(
        call.stages[0],
        severity=Severity.EQUIVALENT,
        ratio_before=0.6,
        causes=(),
        fix=None,
        attempts=call.stages[0].attempts[2:4],
    )
    agreeing = replace(call, given=(), tensors=call.tensors[:1], stages=(stage,))
    return replace(
        diagnosed_report,
        verdict=Verdict.EQUIVALENT,
        calls=(agreeing,),
        findings=(),
        notes=(),
        port_module="norm",
    )


@pytest.fixture
def hostile_diagnosis(
    diagnosed_report: DiagnoseReport, hostile_report: VerifyReport
) -> DiagnoseReport:
    finding = hostile_report.findings[0]
    assert finding.cause is not None
    stage = replace(
        diagnosed_report.calls[0].stages[0],
        causes=(PlacedCause(finding.cause, HOSTILE, HOSTILE, (math.nan, math.inf)),),
        attempts=(
            Attempt(HOSTILE, HOSTILE, HOSTILE, HOSTILE, math.nan, math.nan, (0, 1), False, HOSTILE),
        ),
        fix=finding.fix,
    )
    tensor = ComparedTensor(Stage.FORWARD, HOSTILE, True, math.inf, finding.evidence, HOSTILE)
    call = CallDiagnosis(HOSTILE, (HOSTILE,), (tensor,), (stage,), HOSTILE, HOSTILE)
    return DiagnoseReport(
        Verdict.DIVERGENT,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        HOSTILE,
        hostile_report.reference,
        hostile_report.port,
        (call,),
        (finding,),
        (HOSTILE,),
    )

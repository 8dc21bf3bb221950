"""What a first user met, each as a case: the cause is named, and the words can be acted on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.diagnose.example_case import verify_example

from isograd.diagnose.hypothesis import Example
from isograd.model import Finding, VerifyReport
from isograd.verify.fixing import fixes_of
from isograd.verify.wording import fix_word

LAYERS = dict.fromkeys(("query", "key", "value", "layer"), ("nn.Linear(8, 8)", "nn.Dense(8, 8)"))
SCORES = "s = self.query(x) @ self.key(x).transpose(-1, -2) / 2.0\n"
MS_SCORES = "s = ops.matmul(self.query(x), self.key(x).swapaxes(-1, -2)) / 2.0\n"
PADDED = (
    SCORES + "m = (y == 0)[:, None, :]\n"
    "return torch.softmax(s.masked_fill(m, -math.inf), -1) @ self.value(x)"
)
MS_PADDED = (
    MS_SCORES + "m = (y {compare} 0){axes}\ns = ops.masked_fill(s, m, -1e9)\n"
    "return ops.matmul(ops.softmax(s, axis={axis}), self.value(x))"
)
TOKENS = {"y": 3}
SEQUENCES = ((2, 6, 8), (2, 6))
ATTENTION = {name: LAYERS[name] for name in ("query", "key", "value")}
ONE = {"layer": LAYERS["layer"]}


def padded(compare: str = "==", axes: str = "[:, None, :]", axis: int = -1) -> Example:
    port = MS_PADDED.format(compare=compare, axes=axes, axis=axis)
    return Example(PADDED, port, SEQUENCES, ATTENTION, TOKENS)


def loss(reference: str, port: str) -> Example:
    return Example(reference, port, ((6, 4), (6, 4)), is_loss=True)


@dataclass(frozen=True)
class Expected:
    """The cause, a part of its text, and a part of the edit ("" where there is none)."""

    cause: str
    text: str
    edit: str = ""


CASES = [
    pytest.param(
        padded(axis=-2),
        Expected("softmax.axis", "softmax over axis -2 instead of -1"),
        id="softmax-over-the-queries-is-no-mask",
    ),
    pytest.param(
        padded(compare="!="), Expected("attention.mask", "inverted"), id="inverted-boolean-mask"
    ),
    pytest.param(
        padded(axes="[:, :, None]"),
        Expected("attention.mask", "along the other axis"),
        id="mask-of-the-queries-for-that-of-the-keys",
    ),
    pytest.param(
        Example(
            "m = y == 0\nreturn self.a(x, x, x, m)[0] + m.unsqueeze(-1)",
            "m = y == 0\nreturn self.a(x, x, x, y != 0)[0] + m.expand_dims(-1).astype(ms.float32)",
            SEQUENCES,
            {
                "a": (
                    "nn.MultiheadAttention(8, 2, batch_first=True)",
                    "nn.MultiheadAttention(8, 2, batch_first=True)",
                )
            },
            {"y": 2},
        ),
        Expected("mask.inverted", "the mask that a gets is inverted"),
        id="input-3-differs",
    ),
    pytest.param(
        loss("F.smooth_l1_loss(x, y)", "ops.smooth_l1_loss(x, y)"),
        Expected("loss.reduction", "the loss is not reduced", "reduction='mean'"),
        id="shape-6-4-instead-of-a-scalar",
    ),
    pytest.param(
        Example(
            "F.gelu(self.layer(x))",
            "ops.gelu(self.layer(x).astype(ms.float16)).astype(ms.float32)",
            ((6, 8),),
            ONE,
        ),
        Expected("precision.cast", "gelu computed in float16", "self.layer(x)"),
        id="one-layer-through-float16",
    ),
    pytest.param(
        Example(
            "x + self.layer(torch.tanh(self.query(x)))",
            "x + self.layer(ops.stop_gradient(ops.tanh(self.query(x))))",
            ((6, 8),),
            {name: LAYERS[name] for name in ("layer", "query")},
        ),
        Expected("gradient.stopped", "no gradient flows", "ops.tanh(self.query(x))"),
        id="detached-in-glue-code",
    ),
    pytest.param(
        Example(
            "u, v = self.layer(x), self.layer(y)\nreturn (u - v).pow(2) + u * v",
            "u, v = self.layer(x), ops.stop_gradient(self.layer(y))\nreturn (u - v).pow(2) + u * v",
            ((6, 8), (6, 8)),
            ONE,
        ),
        Expected("gradient.stopped", "result of layer in its call 2", "self.layer(y)"),
        id="one-branch-of-a-siamese-network",
    ),
]


@pytest.mark.parametrize(("example", "expected"), CASES)
def test_the_cause_is_named(example: Example, expected: Expected, tmp_path: Path) -> None:
    report = verify_example(tmp_path, example)
    (found,) = [f for f in report.findings if f.diverges]
    assert found.cause is not None
    assert found.cause.id == expected.cause
    assert expected.text in found.cause.text
    if expected.edit:
        assert found.cause.proved
        assert [edit.new for edit in fixes_of(report).edits] == [
            e.new for e in fixes_of(report).edits if expected.edit in e.new
        ]
        assert fixes_of(report).edits


def test_what_is_no_edit_points_to_the_line_and_is_called_so(tmp_path: Path) -> None:
    example = Example(
        "h = self.layer(x)\nreturn h * torch.sigmoid(h) + 0.1 * h.sin()",
        "h = self.layer(x)\nreturn h * ops.sigmoid(h) + 0.1 * ops.cos(h) * ops.exp(h)",
        ((6, 8),),
        ONE,
    )
    found = only(verify_example(tmp_path, example))
    assert found.fix is not None
    line = (tmp_path / "net_mindspore.py").read_text().split("\n")
    number = int(str(found.fix.where).rpartition(":")[2])
    assert fix_word(found.fix) == "look at"
    assert "ops.cos" in line[number - 1]


def only(report: VerifyReport) -> Finding:
    (found,) = [finding for finding in report.findings if finding.diverges]
    return found


INITIAL = [
    pytest.param(
        "nn.Embedding(9, 8)",
        "nn.Embedding(9, 8)",
        {"x": 9},
        "embedding_table=Normal(1)",
        id="embedding",
    ),
    pytest.param(
        "nn.Sequential(*[nn.Linear(8, 8) for _ in range(5)])",
        "nn.SequentialCell(*[nn.Dense(8, 8, weight_init='normal') for _ in range(5)])",
        {},
        "weight_init=HeUniform(negative_slope=math.sqrt(5))",
        id="five-layers-one-row",
    ),
]


@pytest.mark.parametrize(("reference", "port", "integers", "written"), INITIAL)
def test_initial_values_are_one_row_for_each_kind(
    reference: str,
    port: str,
    integers: dict[str, int],
    written: str,
    tmp_path: Path,
) -> None:
    example = Example("self.a(x)", "self.a(x)", ((6, 8),), {"a": (reference, port)}, integers)
    report = verify_example(tmp_path, example)
    (row,) = [f for f in report.findings if f.code == "parameter.initialisation"]
    assert row.fix is not None
    assert row.fix.text == written
    assert not row.diverges


def test_a_module_that_is_built_once_for_all_blocks_is_one_finding(tmp_path: Path) -> None:
    example = Example(
        "self.a(x)",
        "self.a(x)",
        ((6, 8),),
        {
            "a": (
                "nn.Sequential(*[nn.LayerNorm(8) for _ in range(3)])",
                "nn.SequentialCell(*[nn.LayerNorm((8,), epsilon=1e-3) for _ in range(3)])",
            )
        },
    )
    report = verify_example(tmp_path, example)
    found = only(report)
    assert found.modules == ("a.0", "a.1", "a.2")
    assert found.cause is not None
    assert found.cause.id == "layer_norm.eps"
    (edit,) = fixes_of(report).edits
    assert edit.new == "nn.LayerNorm((8,), epsilon=1e-05)"


def test_a_weight_of_another_size_is_no_gap(tmp_path: Path) -> None:
    """The only parameter of its module, under the name that the other framework gives it."""
    example = Example("self.a(x)", "self.a(x)", ((6, 8, 5),), {"a": ("nn.PReLU(8)", "nn.PReLU(1)")})
    report = verify_example(tmp_path, example)
    found = next(f for f in report.findings if f.code == "parameter.shape")
    assert found.message == "weight has shape (8,) but (1,) in the port (a.w)"
    assert found.fix is not None
    assert "PReLU(num_parameters=8" in found.fix.text
    assert not report.gaps


def test_a_frozen_parameter_is_called_by_its_name(tmp_path: Path) -> None:
    example = Example(
        "self.a(x) * self.gain",
        "self.a(x) * self.gain",
        ((6, 8),),
        {
            "a": ("nn.Linear(8, 8)", "nn.Dense(8, 8)"),
            "gain": (
                "nn.Parameter(torch.ones(1))",
                "ms.Parameter(ms.Tensor([1.0], ms.float32), name='gain', requires_grad=False)",
            ),
        },
    )
    report = verify_example(tmp_path, example)
    found = next(f for f in report.findings if f.code == "parameter.trainable")
    assert found.cause is not None
    assert found.cause.text == "gain has requires_grad=False in the port"

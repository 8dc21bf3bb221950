"""Original and port are packages of one name; builders are verified one after another."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from isograd.convert.verifying import (
    BuilderResult,
    Outcome,
    VerifyOptions,
    parse_builder,
    parse_input,
    verify_builders,
)
from isograd.convert.verifying.places import place_of, place_of_port

ORIGINAL = """
    import torch
    from torch import nn
    from .sizes import WIDTH

    class Net(nn.Module):
        def __init__(self, width=WIDTH):
            super().__init__()
            self.conv = nn.Conv2d(3, width, 3)
            self.bn = nn.BatchNorm2d(width)
            self.fc = nn.Linear(width, 5)

        def forward(self, x):
            x = torch.relu(self.bn(self.conv(x)))
            return {"logits": self.fc(x.mean((2, 3))), "count": len(x)}
"""

PORT = """
    from mindspore import nn, ops
    from .sizes import WIDTH

    class Net(nn.Cell):
        def __init__(self, width=WIDTH):
            super().__init__()
            self.conv = nn.Conv2d(3, width, 3, pad_mode="valid", has_bias=True)
            self.bn = nn.BatchNorm2d(width, momentum=0.9)
            self.fc = nn.Dense(width, 5)

        def construct(self, x):
            x = ops.relu(self.bn(self.conv(x)))
            return {"logits": self.fc(x.mean((2, 3))), "count": len(x)}
"""


@pytest.fixture
def package(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(side: str, source: str) -> Path:
        folder = tmp_path / side / "shapes"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("")
        (folder / "sizes.py").write_text("WIDTH = 4\n")
        (folder / "net.py").write_text(textwrap.dedent(source))
        return folder

    return write


def verify(original: Path, port: Path, *builders: str, **options: object) -> list[BuilderResult]:
    chosen = {"inputs": (parse_input("2x3x8x8"),), **options}
    return list(
        verify_builders(
            place_of(original),
            place_of_port(original, port),
            [parse_builder(b) for b in builders],
            VerifyOptions(**chosen),  # type: ignore[arg-type]
        )
    )


def test_faithful_port_is_equivalent(package, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    original, port = package("original", ORIGINAL), package("port", PORT)
    builders = ("shapes.net:Net", "shapes.net:Net(width=6)")
    first, second = verify(original, port, *builders, seeds=(0, 3), journal=tmp_path / "journal")
    for result in (first, second):
        assert result.outcome is Outcome.EQUIVALENT, result.first_problem
        assert result.paired
        assert [seed.seed for seed in result.seeds] == [0, 3]
        assert {stage for stage, verdict in result.seeds[0].stages if verdict == "equivalent"} >= {
            "backward",
            "training",
            "inference",
        }


def test_wrong_port_is_divergent_and_says_where(package) -> None:  # type: ignore[no-untyped-def]
    wrong = PORT.replace("momentum=0.9", "momentum=0.9, eps=1e-2")
    (found,) = verify(package("original", ORIGINAL), package("port", wrong), "shapes.net:Net")
    assert found.outcome is Outcome.DIVERGENT
    assert "bn" in found.first_problem


@pytest.mark.parametrize(
    ("original", "port", "outcome", "words"),
    [
        (ORIGINAL, "import torch\n" + textwrap.dedent(PORT), Outcome.NO_IMPORT, "torch must not"),
        (ORIGINAL, PORT.replace("width, 5)", "width, five)"), Outcome.NO_BUILD, "five"),
        (ORIGINAL, PORT.replace("ops.relu", "ops.rely"), Outcome.FAILED, "rely"),
        (ORIGINAL.replace("Linear", "Linnea"), PORT, Outcome.NO_ORIGINAL, "Linnea"),
    ],
)
def test_each_way_to_fail_has_its_name(  # type: ignore[no-untyped-def]
    package, original: str, port: str, outcome: Outcome, words: str
) -> None:
    (found,) = verify(package("original", original), package("port", port), "shapes.net:Net")
    assert found.outcome is outcome
    assert words in found.first_problem


def test_finished_builder_is_not_run_again_until_a_file_changes(  # type: ignore[no-untyped-def]
    package, tmp_path: Path
) -> None:
    original, port = package("original", ORIGINAL), package("port", PORT)
    options = {"journal": tmp_path / "journal"}
    (first,) = verify(original, port, "shapes.net:Net", **options)
    (again,) = verify(original, port, "shapes.net:Net", **options)
    assert (first.is_remembered, again.is_remembered) == (False, True)
    assert again.seeds == first.seeds
    (port / "unrelated.py").write_text("x = 1\n")
    (third,) = verify(original, port, "shapes.net:Net", **options)
    assert third.is_remembered
    (port / "sizes.py").write_text("WIDTH = 7\n")
    (fourth,) = verify(original, port, "shapes.net:Net", **options)
    assert not fourth.is_remembered
    assert fourth.outcome is Outcome.DIVERGENT


def test_port_that_did_not_import_is_tried_again(package, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    original = package("original", ORIGINAL)
    options = {"journal": tmp_path / "journal"}
    port = package("port", "import torch")
    (first,) = verify(original, port, "shapes.net:Net", **options)
    (again,) = verify(original, port, "shapes.net:Net", **options)
    assert first.outcome is again.outcome is Outcome.NO_IMPORT
    assert not again.is_remembered


@pytest.mark.parametrize(
    ("layer", "call", "guess"),
    [
        ("Conv2d(5, 2, 3)", "self.layer(x)", "2x5x64x64"),
        ("Linear(7, 2)", "self.layer(x)", "2x7"),
        ("Embedding(11, 2)", "self.layer(x)", "2x16:int64<11"),
    ],
)
def test_inputs_are_guessed_from_the_first_layer(  # type: ignore[no-untyped-def]
    package, layer: str, call: str, guess: str
) -> None:
    source = f"""
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.{layer}
            def forward(self, x):
                return {call}
    """
    broken = package("port", "raise ImportError('no port')")
    (found,) = verify(package("original", source), broken, "shapes.net:Net", inputs=())
    assert found.inputs == (guess,)
    assert found.outcome is Outcome.NO_IMPORT

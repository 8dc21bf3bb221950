"""Pairs of pipelines: what differs is found, where it arises and why; what is the same passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from isograd.cli import main
from isograd.data.compare.randomness import compare_draws
from isograd.data.compare.run import CompareOptions, compare
from isograd.data.compare.side import PipelineSide
from isograd.data.model import Comparison, Order
from isograd.data.pipelines.host import PipelineHandle, is_pipeline
from isograd.data.pipelines.service import DataService
from isograd.progress import SilentProgress

PIPELINES = Path(__file__).parent / "pipelines"
#: The seed of MindSpore's data sets by which it knows that none was set.
UNSEEDED = 5489


@pytest.fixture(scope="module", autouse=True)
def _images(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Pictures with fine detail, whose sides differ, two classes of five."""
    root = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(3)
    for number in range(10):
        coarse = Image.fromarray(rng.integers(0, 256, (7, 6, 3)).astype(np.uint8))
        smooth = np.asarray(coarse.resize((61 + number, 75), Image.Resampling.BICUBIC))
        noisy = np.clip(smooth.astype(int) + rng.integers(-40, 40, smooth.shape), 0, 255)
        path = root / "ab"[number // 5] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(noisy.astype(np.uint8)).save(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ISOGRAD_TEST_IMAGES", str(root))
        yield


@pytest.fixture(autouse=True)
def _no_seed_of_other_tests() -> Any:
    """A seed that another test has set in this process would fix MindSpore's shuffles."""
    import mindspore.dataset as ds

    before = ds.config.get_seed()
    ds.config.set_seed(UNSEEDED)
    yield
    ds.config.set_seed(before)


class Local(PipelineHandle):
    """A pipeline in the test's own process: as the worker answers, without its start."""

    def __init__(self, name: str, side: str) -> None:
        self.address = str(PIPELINES / name)
        self._service = DataService()
        self.about = self.call("open", name, str(PIPELINES), f"pipeline {side}")

    def call(self, method: str, *arguments: Any) -> Any:
        return self._service.call(method, list(arguments))


def compared(reference: str, port: str) -> Comparison:
    sides = [
        PipelineSide(Local(name, side))
        for name, side in ((f"torch_side.py:{reference}", "A"), (f"mindspore_side.py:{port}", "B"))
    ]
    return compare(*sides, CompareOptions(draws=400), SilentProgress())


def _causes(found: Comparison) -> list[str]:
    return [one.cause.id for one in found.differences if one.cause is not None]


@pytest.mark.parametrize(
    ("reference", "port"),
    [
        pytest.param("evaluation", "same", id="evaluation on Pillow's images"),
        pytest.param("training", "training", id="training, by distribution"),
        pytest.param("table", "table", id="a table"),
        pytest.param("shuffled_table", "shuffled", id="a shuffled table"),
    ],
)
def test_the_same_is_the_same(reference: str, port: str) -> None:
    found = compared(reference, port)
    assert [one.finding.message for one in found.differences] == []
    assert found.gaps == ()
    assert found.fields or found.steps


@pytest.mark.parametrize(
    ("port", "cause", "transform", "said"),
    [
        pytest.param("guide", "data.resize", "Resize", "without antialiasing", id="C++ resize"),
        pytest.param("other_mean", "data.normalize", "Normalize", "mean is", id="mean in BGR"),
        pytest.param("other_crop", "data.crop", "CenterCrop", "size is", id="another window"),
        pytest.param("bicubic", "data.resize", "Resize", "and bicubic in B", id="bicubic"),
        pytest.param(
            "no_crop",
            "data.resize",
            "Resize",
            "size is 40 in A and [32, 32] in B",
            id="resized at once",
        ),
    ],
)
def test_the_first_transform_that_differs_is_named_with_its_cause(
    port: str, cause: str, transform: str, said: str
) -> None:
    found = compared("evaluation", port)
    assert _causes(found)[0] == cause
    first = found.differences[0]
    assert first.transform.startswith(transform)
    assert first.cause is not None
    assert first.cause.proved
    assert said in first.finding.message
    assert found.first_difference is not None
    assert found.first_difference.transform == first.transform


def test_draws_of_another_distribution_and_a_dropped_batch_are_both_found() -> None:
    found = compared("training", "rarely_flipped")
    assert _causes(found) == ["data.random_parameters", "data.drop_last"]
    assert "p is 0.5 in A and 0.2 in B" in found.differences[0].finding.message


@pytest.mark.parametrize(
    ("reference", "port", "cause"),
    [
        pytest.param("table", "dropped", "data.drop_last", id="last batch"),
        pytest.param("table", "shuffled", "data.shuffle", id="shuffled by default"),
        pytest.param("table", "repeated", "data.repeat", id="repeat before batch"),
        pytest.param("table", "shard", "data.samples", id="a shard"),
        pytest.param("shuffled_table", "seeded", "data.shuffle_repeats", id="repeated shuffle"),
    ],
)
def test_the_order_is_compared_batch_by_batch(reference: str, port: str, cause: str) -> None:
    found = compared(reference, port)
    assert _causes(found) == [cause]
    assert (found.order is Order.SAME) is False


def _of_files(reference: str, port: str, draws: int = 100) -> Comparison:
    names = [name if ":" in name else f"torch_side.py:{name}" for name in (reference, port)]
    sides = [PipelineSide(Local(name, side)) for name, side in zip(names, "AB", strict=True)]
    return compare(*sides, CompareOptions(draws=draws), SilentProgress())


@pytest.mark.parametrize(
    ("reference", "port"),
    [
        pytest.param("flipped", "flipped", id="itself"),
        pytest.param("flipped", "flipped_mixed", id="other order of files"),
        pytest.param("flipped_cut", "flipped_cut", id="a dropped batch on both sides"),
    ],
)
def test_what_is_drawn_makes_no_other_sample(reference: str, port: str) -> None:
    for _ in range(20):
        found = _of_files(reference, port)
        assert [one.finding.message for one in found.differences] == []
        assert found.gaps == ()


@pytest.mark.parametrize(
    ("reference", "port", "cause"),
    [
        pytest.param("flipped", "flipped_half", "data.samples", id="a shard"),
        pytest.param("flipped_half", "flipped_other_half", "data.samples", id="the other shard"),
        pytest.param("flipped", "flipped_twice", "data.samples", id="one twice"),
        pytest.param("flipped_nine", "flipped_other_nine", "data.shard", id="another one"),
        pytest.param("flipped", "flipped_cut", "data.drop_last", id="a dropped batch"),
    ],
)
def test_other_samples_are_found_before_they_are_drawn(
    reference: str, port: str, cause: str
) -> None:
    for _ in range(3):
        assert _causes(_of_files(reference, port)) == [cause]


def test_draws_of_both_frameworks_are_of_the_same_samples() -> None:
    for _ in range(5):
        found = _of_files("flipped", "mindspore_side.py:flipped")
        assert [one.finding.message for one in found.differences] == []


def test_a_random_transform_that_one_side_leaves_out_is_named() -> None:
    for pair in (("cropped", "cropped_only"), ("cropped_only", "cropped")):
        (found,) = _of_files(*pair, draws=1000).differences
        assert found.cause is not None
        assert found.cause.id == "data.transform_missing"
        assert found.transform.startswith("RandomHorizontalFlip")


def test_a_parameter_is_said_with_its_value_under_the_other_librarys_name() -> None:
    found = _of_files("cropped", "mindspore_side.py:cropped_on_gray", draws=1000)
    assert "fill is 0 in A and [128, 128, 128] in B" in found.differences[0].finding.message


def test_a_data_set_that_is_only_iterated_is_read_as_its_loader_would_read_it() -> None:
    sides = [PipelineSide(Local(f"torch_side.py:{name}", "A")) for name in ("table", "stream")]
    found = compare(*sides, CompareOptions(), SilentProgress())
    assert found.samples == 20
    assert [field.differs for field in found.fields] == [0, 0]


def test_fields_without_listed_transforms_are_explained_by_their_values() -> None:
    found = compared("tokens", "left_padded")
    assert _causes(found) == ["data.padding", "data.padding"]
    assert "B pads with 1 on the left, A with 0 on the right" in str(found.differences[0])


def test_the_command_draws_the_report(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    addresses = [str(PIPELINES / n) for n in ("torch_side.py:table", "mindspore_side.py:dropped")]
    status = main(["data", *addresses, "--json", str(file), "--quiet"])
    found = json.loads(file.read_text())
    assert status == 1
    assert (found["schema"], found["verdict"]) == ("isograd/data/1", "differs")
    assert found["comparison"]["findings"][0]["cause"]["id"] == "data.drop_last"
    assert [source["format"] for source in found["sources"]] == [
        "torch DataLoader",
        "MindSpore dataset",
    ]


def test_what_a_pipeline_raises_names_the_users_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["data", str(PIPELINES / "torch_side.py:raises"), "--quiet"]) == 2
    assert "raised RuntimeError: no disk at torch_side.py:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("data.py:train", True, id="a file"),
        pytest.param("package.module:make", True, id="a module"),
        pytest.param("s3://bucket/x", False, id="a URL"),
        pytest.param("train.tfrecord", False, id="a data set"),
        pytest.param("C:/data/x", False, id="a drive"),
    ],
)
def test_pipelines_are_told_from_data_sets(address: str, expected: bool) -> None:
    assert is_pipeline(address) is expected


def test_the_level_of_the_test_of_distributions_holds() -> None:
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        first, second = rng.standard_normal((2, 500, 8))
        alarms += not compare_draws(first, second).is_same
        assert not compare_draws(first, second + 0.5).is_same
    assert alarms == 0


def test_an_extent_is_compared_exactly_where_pixels_have_a_tolerance() -> None:
    rng = np.random.default_rng(0)
    first = np.column_stack([np.full(400, 40.0), rng.uniform(0, 255, 400)])
    second = np.column_stack([np.full(400, 36.0), first[:, 1] + 3.0])
    assert not compare_draws(first, second, [0.0, 4.0]).is_same
    assert compare_draws(first, second, [0.0, 4.0]).feature == 0
    assert compare_draws(first, second, [4.0, 4.0]).is_same

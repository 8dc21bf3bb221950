"""Recordings of a GPU (H100, torch 2.11): what its kernels are, and what a change would leave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isograd.profile.analyse.analysis import Analysis, analyse
from isograd.profile.analyse.breakdown import Limit
from isograd.profile.analyse.kernels import with_launchers
from isograd.profile.analyse.kinds import Kind, kind_of
from isograd.profile.document import shortened
from isograd.profile.read.open import open_profile
from isograd.profile.rules import examples as made
from isograd.profile.rules.catalogue import apply_rules
from isograd.profile.rules.making import Launch, on_device

RECORDINGS = Path(__file__).parent / "data" / "torch_gpu"

#: Recording, limit, rule and line that name the plant, and the milliseconds of a step without it,
#: as they were measured beside it (the plain step of the same script without the line).
PLANTED = [
    ("casts", Limit.MEMORY, "operators.conversion", "train.py:27", 9.36),
    ("upload", Limit.COMPUTE, "operators.upload", "train.py:24", 63.73),
    ("sleep", Limit.HOST, "host.python", "train.py:31", 9.35),
    ("gc", Limit.HOST, "host.garbage_collection", "train.py:30", 9.41),
    ("transform", Limit.DATA, "data.few_workers", "train.py:22", 3.57),
]


def recorded(name: str) -> Analysis:
    return analyse(open_profile(RECORDINGS / name))


@pytest.mark.parametrize(("name", "limit", "code", "where", "measured_ms"), PLANTED)
def test_a_planted_bottleneck_is_named_and_its_removal_predicted(
    name: str, limit: Limit, code: str, where: str, measured_ms: float
) -> None:
    analysis = recorded(name)
    first = apply_rules(analysis)[0]
    assert (analysis.limit, first.code, first.where) == (limit, code, where)
    assert first.what_if is not None
    assert first.what_if.step_s * 1e3 == pytest.approx(measured_ms, rel=0.07)


def test_kernels_are_named_by_the_operator_that_launched_them() -> None:
    analysis = recorded("amp.json.gz")
    kernels = [one for one in analysis.operators if one.device]
    products = {(o.name, o.dtypes) for o in kernels if kind_of(o.name) is Kind.DENSE}
    assert products == {("aten::addmm", "bfloat16"), ("aten::mm", "bfloat16")}
    assert not [o.name for o in kernels if "gemm" in o.name]
    assert {o.name for o in kernels if o.shapes == "2048×2048"} >= {"aten::to"}


def test_a_kernel_is_called_by_the_user_where_its_operator_is() -> None:
    """Ascend's kernels have names of their own: `Cast` of `aclnnCast`."""
    launches = [Launch("aclnnCast", 0.1, 6.0, ("Cast", "kernel"), count=2)]
    analysis = analyse(on_device(13.0, [*launches, Launch("aclnnMatmul", 0.1, 1.0)]))
    cast = next(one for one in analysis.operators if one.name == "Cast")
    assert (cast.device, cast.is_outer, cast.callers[0][0]) == (True, True, "aclnnCast")
    assert "operators.conversion" in {finding.code for finding in apply_rules(analysis)}


def test_a_copy_between_host_and_device_keeps_its_name() -> None:
    analysis = recorded("upload")
    assert any(o.device and o.name.startswith("Memcpy HtoD") for o in analysis.operators)
    assert [o.name for o in analysis.operators if o.is_upload] == ["aten::to"]


def test_a_trace_that_does_not_say_which_launch_is_whose_stays_as_it_is() -> None:
    spans = made.healthy().spans
    assert spans is not None
    assert with_launchers(spans) is spans


def test_spans_without_a_launching_call_still_know_when_it_ended() -> None:
    spans = made.on_a_device().spans
    assert spans is not None
    assert spans.launches is not None
    kept = spans.rows(spans.is_on_device)
    assert kept.launches is not None
    assert (kept.launches.call == -1).all()
    assert (kept.launches.ended_ns == spans.launches.ended_ns).all()
    assert with_launchers(kept).owner is None


def test_long_shapes_are_cut_after_a_tensor() -> None:
    assert shortened("2×3, 4") == "2×3, 4"
    assert (
        shortened(", ".join(["2048×2048"] * 9))
        == "2048×2048, 2048×2048, 2048×2048, 2048×2048, 2048×2048, …"
    )
    assert shortened("×".join(["7"] * 99)) == "7×" * 30 + "…"


def test_the_table_says_what_ran_on_the_device() -> None:
    command = [sys.executable, "-m", "isograd", "profile", str(RECORDINGS / "casts")]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    row = next(line for line in said.splitlines() if line.startswith("aten::to   "))
    assert row.split()[1:4] == ["device", "64×1024×1024", "float16"]

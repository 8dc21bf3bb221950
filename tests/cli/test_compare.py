"""`isograd compare`: outputs, exit statuses and wrong calls."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isograd.cli import main


def _set(path: Path, **changes: object) -> str:
    draw = np.random.default_rng(0)
    tensors = {f"l{n}.weight": draw.standard_normal((4, 5)).astype("f4") for n in range(3)}
    for name, values in changes.items():
        name = name.replace("__", ".")
        if values is None:
            del tensors[name]
        else:
            tensors[name] = np.asarray(values, "f4")
    np.savez(path, **tensors)
    return str(path)


@pytest.fixture
def clean(tmp_path: Path) -> str:
    return _set(tmp_path / "clean.npz")


@pytest.mark.parametrize(
    ("changes", "options", "status"),
    [
        ({}, (), 0),
        ({"l1__weight": np.zeros((4, 5))}, (), 1),
        ({"l1__weight": np.zeros((4, 5))}, ("--atol", "100"), 0),
        ({"l1__weight": np.zeros((4, 5))}, ("--ignore", "l1.*"), 0),
        ({"l1__weight": np.zeros((4, 5))}, ("--consecutive",), 0),
        ({"l1__weight": np.zeros(5)}, (), 1),
        ({"l1__weight": None}, (), 1),
        ({"more": [1.0]}, (), 1),
        ({}, ("--only", "nothing"), 2),
        ({}, ("--rtol", "-1"), 2),
    ],
)
def test_exit_status(
    tmp_path: Path, clean: str, changes: dict[str, object], options: tuple[str, ...], status: int
) -> None:
    other = _set(tmp_path / "other.npz", **changes)
    assert main(["compare", clean, other, *options]) == status


def test_all_outputs_at_once(
    tmp_path: Path, clean: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = _set(tmp_path / "other.npz", l1__weight=np.zeros((4, 5)))
    table, page = tmp_path / "table.csv", tmp_path / "page.html"
    main(["compare", clean, other, "--json", "-", "--csv", str(table), "--html", str(page)])
    captured = capsys.readouterr()
    value = json.loads(captured.out)
    assert (value["schema"], value["verdict"]) == ("isograd/compare/1", "divergent")
    assert (value["first_differing"], value["last_agreeing"]) == ("l1.weight", "l0.weight")
    assert value["tensors"][1]["difference"]["outside"] == 20
    assert "First that differs" in captured.err
    assert len(table.read_text().splitlines()) == 4
    assert "l1.weight" in page.read_text()


def test_quiet_says_one_line(clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", clean, clean, "--quiet"])
    captured = capsys.readouterr()
    assert (captured.out.count("\n"), captured.err) == (1, "")


def test_a_map_file_of_either_form(tmp_path: Path, clean: str) -> None:
    draw = np.load(clean)
    np.savez(tmp_path / "other.npz", **{f"x{n}": draw[f"l{n}.weight"] for n in range(3)})
    pairs = {f"l{n}.weight": f"x{n}" for n in range(3)}
    (tmp_path / "map.json").write_text(json.dumps(pairs))
    (tmp_path / "map.txt").write_text("# names\n" + "".join(f"{a} {b}\n" for a, b in pairs.items()))
    for name in ("map.json", "map.txt"):
        arguments = ["compare", clean, str(tmp_path / "other.npz"), "--map", str(tmp_path / name)]
        assert main(arguments) == 0


def test_an_envelope(tmp_path: Path, clean: str) -> None:
    other = _set(tmp_path / "other.npz", l1__weight=np.zeros((4, 5)))
    envelope = tmp_path / "envelope.json"
    for allowed, status in ((1.0, 0), (0.9, 1)):
        envelope.write_text(json.dumps({"*": allowed}))
        assert main(["compare", clean, other, "--envelope", str(envelope)]) == status


def test_resuming(tmp_path: Path, clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", clean, clean, "--resume", str(tmp_path / "journal")]
    assert main(arguments) == main(arguments) == 0
    assert "3 pairs from the journal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["CLEAN", "none"], "does not exist"),
        (["CLEAN", "CLEAN", "--csv", "-", "--json", "-"], "two reports"),
        (["CLEAN", "CLEAN", "--json", "CLEAN"], "would be overwritten"),
        (["CLEAN", "CLEAN", "--map", "none"], "cannot be read"),
        (["CLEAN", "CLEAN", "--envelope", "CLEAN", "--atol", "1"], "both an envelope"),
    ],
)
def test_wrong_calls(
    clean: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [clean if part == "CLEAN" else part for part in arguments]
    assert main(["compare", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_two_logs_are_compared_as_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, loss in (("a.log", 2.0), ("b.log", 2.1)):
        (tmp_path / name).write_text(
            f"epoch: 1 step: 1, loss is 2.5\nepoch: 1 step: 2, loss is {loss}\n"
        )
    first, second = str(tmp_path / "a.log"), str(tmp_path / "b.log")
    table = tmp_path / "t.csv"
    assert main(["compare", first, second, "--json", "-", "--csv", str(table)]) == 1
    captured = capsys.readouterr()
    value = json.loads(captured.out)
    assert (value["verdict"], value["first_step_out"]) == ("backward-or-update", 2)
    assert "part at step 2" in captured.err
    assert len(table.read_text().splitlines()) == 3
    assert main(["compare", first, first, "--quiet"]) == 0

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
        (["CLEAN"], "1 inputs are given"),
        (["CLEAN", "CLEAN", "CLEAN"], "3 inputs are given"),
        (["CLEAN", "CLEAN", "--steps", "1:5"], "--steps does not apply to tensors"),
        (["CLEAN", "CLEAN", "--scheduler", "tcp://h:1"], "without --engine dask"),
        (["CLEAN", "CLEAN", "--parquet", "-"], "cannot write to standard output"),
        (["CLEAN", "--between-ranks"], "two ranks"),
        (["CLEAN", "LOG"], "is a log of losses"),
        (["LOG", "LOG", "--rtol", "1"], "--rtol does not apply to loss curves"),
        (["LOG", "LOG", "--parquet", "x.parquet"], "--parquet does not apply to loss curves"),
        (["LOG", "LOG", "--engine", "dask"], "--engine does not apply to loss curves"),
        (["LOG", "LOG", "--steps", "5:1"], "holds no step"),
        (["LOG", "LOG", "--steps", "five"], "no span of steps"),
        (["LOG", "LOG", "--steps", "7:"], "no step in common"),
        (["LOG", "LOG", "--series", "accuracy"], "no series 'accuracy'"),
        (["--sql", "select 1"], "without a file"),
        (["none.parquet", "--sql", "select 1"], "does not exist"),
        (["CLEAN", "--sql", "select 1", "--atol", "1"], "--atol does not apply to a question"),
        (["CLEAN", "CLEAN", "--envelope", "CLEAN", "--atol", "1"], "both an envelope"),
    ],
)
def test_wrong_calls(
    clean: str,
    tmp_path: Path,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = tmp_path / "train.log"
    log.write_text("step: 1, loss is 2.5\nstep: 2, loss is 2.0\n")
    named = {"CLEAN": clean, "LOG": str(log)}
    arguments = [named.get(part, part) for part in arguments]
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


def test_chosen_steps_of_two_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, late in (("a.csv", 1.0), ("b.csv", 9.0)):
        (tmp_path / name).write_text(f"step,loss,other_loss\n1,3,1\n2,2,1\n3,{late},1\n")
    logs = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    page = tmp_path / "page.html"
    assert main(["compare", *logs, "--html", str(page)]) == 1
    assert 'class="chart"' in page.read_text()
    assert main(["compare", *logs, "--steps", ":2"]) == 0
    assert main(["compare", *logs, "--series", "other_loss"]) == 0


def _ranks(folder: Path, *, spoiled: str = "", names: str = "rank_{}") -> str:
    for rank in range(3):
        inside = folder / names.format(rank)
        inside.mkdir(parents=True)
        for name in ("w1", "w2"):
            values = np.arange(6.0) + (f"{rank}{name}" == spoiled)
            np.save(inside / f"{name}.npy", values)
    return str(folder)


def test_ranks_of_two_runs_and_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = _ranks(tmp_path / "a")
    same = _ranks(tmp_path / "b", names="device{}")
    other = _ranks(tmp_path / "c", spoiled="2w2")
    assert main(["compare", first, same]) == 0
    assert main(["compare", first, "--between-ranks"]) == 0
    capsys.readouterr()
    assert main(["compare", other, "--between-ranks", "--json", "-"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert [rank["rank"] for rank in value["ranks"]] == [1, 2]
    assert value["first_differing"] == "rank0/w2"
    assert main(["compare", first, other, "--between-ranks", "--json", "-"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert [rank["counts"]["differs"] for rank in value["ranks"]] == [0, 0, 1]
    assert [within["verdict"] for within in value["between_ranks"]] == ["equivalent", "divergent"]


def test_what_lies_beside_the_ranks_is_not_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = _ranks(tmp_path / "a"), _ranks(tmp_path / "b")
    np.save(tmp_path / "b" / "alone.npy", np.ones(2))
    assert main(["compare", first, other]) == 1
    assert "beside the folders" in capsys.readouterr().out
    assert main(["compare", first, other, "--ignore", "alone"]) == 0


def test_a_damaged_rank_is_named_and_the_others_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = _ranks(tmp_path / "a"), _ranks(tmp_path / "b")
    for name in ("w1", "w2"):
        (tmp_path / "b" / "rank_1" / f"{name}.npy").write_bytes(b"no numbers")
    assert main(["compare", first, other, "--json", "-"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert value["verdict"] == "incomplete"
    assert value["counts"]["identical"] == 4
    assert value["counts"]["failed"] == 1


@pytest.mark.parametrize(
    ("names", "options", "status"),
    [
        (("net-1_100.safetensors", "net-1_200.safetensors"), (), 1),
        (("step_100.safetensors", "step_200.safetensors"), (), 0),
        (("step_100.safetensors", "step_200.safetensors"), ("--no-consecutive",), 1),
        (("run1_step_100.safetensors", "run2_step_200.safetensors"), (), 1),
        (("a.safetensors", "b.safetensors"), (), 1),
        (("a.safetensors", "b.safetensors"), ("--consecutive",), 0),
    ],
)
def test_states_of_one_training_by_their_names(
    tmp_path: Path,
    names: tuple[str, str],
    options: tuple[str, ...],
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from safetensors.numpy import save_file

    for change, name in enumerate(names):
        tensors = {
            "moved": np.ones(5, "f4") + np.float32(change),
            "frozen": np.ones(4, "f4"),
        }
        save_file(tensors, tmp_path / name)
    assert main(["compare", *(str(tmp_path / name) for name in names), *options]) == status
    text = capsys.readouterr().out
    assert ("did not change" in text) is (status == 0)
    assert ("--no-consecutive" in text) is (status == 0 and not options)


def test_parquet_and_sql(tmp_path: Path, clean: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    other = _set(tmp_path / "other.npz", l1__weight=np.zeros((4, 5)))
    result = str(tmp_path / "result.parquet")
    assert main(["compare", clean, other, "--quiet", "--parquet", result]) == 1
    capsys.readouterr()
    question = "select reference, outside from result where verdict = 'differs'"
    assert main(["compare", "--sql", question, result, "--csv", "-"]) == 0
    assert capsys.readouterr().out == "reference,outside\nl1.weight,20\n"


def test_states_of_an_optimizer_are_set_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.numpy import save_file

    for name, squares in (("a", 1.0), ("b", 2.0)):
        weight = np.arange(6, dtype="f4")
        tensors = {"fc.weight": weight, "moment2.fc.weight": weight * np.float32(squares)}
        save_file(tensors, tmp_path / f"{name}.safetensors")
    files = [str(tmp_path / f"{name}.safetensors") for name in "ab"]
    assert main(["compare", *files]) == 0
    assert "1 tensors beside the network, such as moment2.fc.weight" in capsys.readouterr().out
    assert main(["compare", *files, "--with-states"]) == 1
    assert main(["compare", *files, "--only", "moment2.*"]) == 1

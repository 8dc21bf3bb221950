"""The command `isograd` itself: help, speed of import, unknown verbs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import isograd
from isograd.cli import main
from isograd.cli.entry import VERBS
from isograd.cli.entry import isograd as group
from isograd.cli.failure import report_unexpected

SOURCE = Path(isograd.__file__).parents[1]
HEAVY = ("numpy", "torch", "mindspore", "rich", "jinja2", "safetensors")


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("arguments", [["--help"], *([verb, "--help"] for verb in VERBS)])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from isograd.cli import main; "
        f"status = main({arguments!r}); "
        f"print(status, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = _python("-c", code)
    assert result.stdout.splitlines()[0].startswith("Usage: isograd"), result.stderr
    assert result.stdout.splitlines()[-1] == "0 []"


_UNUSUAL = {
    "explain": ["explain", "a" * 300],
    "weights": ["weights", "{}", "-o", "out.ckpt"],
    "convert": ["convert", "{}", "-o", "out"],
    "compare": ["compare", "{}", "{}"],
    "diagnose": ["diagnose", "{}", "--module", "x"],
    "init": ["init", "{}", "{}"],
}


@pytest.mark.parametrize("verb", sorted(set(VERBS) - {"lsp"}))
def test_a_path_that_the_system_refuses_is_no_internal_error(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [part.format("a" * 300) for part in _UNUSUAL.get(verb, [verb, "{}"])]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "internal error" not in error
    assert error.startswith("isograd: ")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_list_of_verbs_and_a_verbs_own_help_say_the_same(verb: str) -> None:
    command = group.get_command(None, verb)  # type: ignore[arg-type]  # no context is needed
    assert command is not None
    assert (command.help or "").split("\n\n")[0].replace("\n", " ") == VERBS[verb]


def test_the_module_is_the_command() -> None:
    result = _python("-m", "isograd", "--version")
    assert result.returncode == 0
    assert result.stdout.startswith(f"isograd, version {isograd.__version__}\n")


def test_the_version_names_the_frameworks_without_importing_them() -> None:
    code = (
        "import sys; from isograd.cli import main; main(['--version']); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    lines = _python("-c", code).stdout.splitlines()
    assert f"torch {metadata.version('torch')}" in lines
    assert f"mindspore {metadata.version('mindspore')}" in lines
    assert lines[-1] == "[]"


def test_a_framework_that_is_missing_is_said_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("isograd.cli.entry.FRAMEWORKS", ("torch", "no-such-framework"))
    assert main(["--version"]) == 0
    assert "no-such-framework not found" in capsys.readouterr().out


def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    code = (
        "import sys; from isograd.cli import main; from isograd.cli.entry import VerbGroup\n"
        "import click\n"
        "def invoke(self, context):\n"
        "    raise BrokenPipeError\n"
        "click.Group.invoke = invoke\n"
        "sys.exit(main(['verify']))\n"
    )
    result = _python("-c", code)
    assert result.returncode == 2
    assert result.stderr.startswith("isograd: the reader of the output went away")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shout"], "isograd: There is no verb 'shout'. See `isograd --help`."),
        (["--fast"], "isograd: No such option"),
    ],
)
def test_wrong_calls(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: isograd" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_answers_the_question_of_the_list(verb: str) -> None:
    context = group.make_context("isograd", [verb, "--help"], resilient_parsing=True)
    command = group.get_command(context, verb)
    assert command is not None
    assert (command.help or "").startswith(VERBS[verb])


def test_details_of_errors_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("isograd.cli.failure.MOST_KEPT", 2)
    folder = tmp_path / "cache" / "isograd" / "errors"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.txt").write_text("old")
        os.utime(folder / f"{number}.txt", (number, number))
    report_unexpected(RuntimeError("odd"))
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 2
    assert "3.txt" in kept
    assert str(folder) in capsys.readouterr().err
    assert list(tmp_path.glob("isograd-*")) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("isograd ver", "plain,verify", id="verb"),
        pytest.param("isograd scan --ex", "plain,--exclude", id="option"),
    ],
)
def test_the_shell_completes_verbs_and_options(words: str, expected: str) -> None:
    count = str(len(words.split()) - 1)
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "_ISOGRAD_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": count,
    }
    code = "from isograd.cli import main; main()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert expected in done.stdout.splitlines()

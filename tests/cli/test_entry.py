"""The command `isograd` itself: help, speed of import, unknown verbs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import isograd
from isograd.cli import main
from isograd.cli.entry import VERBS
from isograd.cli.entry import isograd as group

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


def test_the_module_is_the_command() -> None:
    result = _python("-m", "isograd", "--version")
    assert (result.returncode, result.stdout) == (0, f"isograd, version {isograd.__version__}\n")


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

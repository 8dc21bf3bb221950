"""The command `isograd`, its verbs, and the one place where errors become exit statuses."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

import click

from isograd.cli.failure import INTERRUPTED, UNABLE, report_error, report_unexpected, say
from isograd.errors import IsogradError, UsageError
from isograd.version import __version__

#: Each verb with what it does; its command is `isograd.cli.VERB.command`.
VERBS = {
    "scan": "Find what of a PyTorch project MindSpore supports, changes or lacks, and its hazards.",
    "convert": "Rewrite PyTorch code for MindSpore.",
    "lsp": "Show findings of scan in an editor while code is written (language server).",
    "init": "Write a first case file for a network and its port.",
    "verify": "Prove that a port is equivalent, or find where it first differs, why, and the fix.",
    "params": "List the tensors of a checkpoint, check them, and pair them with another's.",
    "weights": "Convert a checkpoint to the other framework's format and names.",
    "diagnose": "Explain why one module differs, with every hypothesis that was tried.",
    "profile": "Find where a step's time goes, what limits it, and what would change it.",
    "explain": "Explain a cause: what shows it and what to do.",
    "compare": "Compare two checkpoints, tensor folders, dumps or loss curves.",
    "watch": "Judge a training run's health, and find where the first NaN or Inf arose.",
    "data": "Look at a data set or pipeline, or compare two pipelines sample by sample.",
    "tune": "Search the best hyper-parameters of an unchanged training script.",
    "serve": "Show runs, reports and files below folders as web pages.",
}


#: Packages that `--version` looks for.
FRAMEWORKS = ("torch", "mindspore")


class VerbGroup(click.Group):
    """A group that imports a verb only when it runs, so that help stays fast."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # What is left to flush at the end of the process must not fail a second time.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise UsageError(
                "the reader of the output went away before all was written",
                "Write to a file instead, for example with --json FILE.",
            ) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"isograd.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches("".join(args[:1]), VERBS, n=2)
            if not args or args[0].startswith("-"):
                raise error
            hint = " or ".join(f"`{name}`" for name in near)
            ctx.fail(f"There is no verb {args[0]!r}" + (f". Did you mean {hint}?" if near else ""))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=VerbGroup,
    subcommand_metavar="VERB …",
    options_metavar="",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, parameter, value: _show_version(context, value),
    help="Show the versions of isograd and of the frameworks found.",
)
def isograd() -> None:
    """Proves that a MindSpore port of a PyTorch network is the same network.

    Exit status: 0 clean, 1 something was found that a person must act on, 2 isograd was called
    wrongly or could not do its work.
    """


def _show_version(context: click.Context, is_asked: bool) -> None:
    """isograd's version, and those of the frameworks that are installed, which are not imported."""
    if not is_asked or context.resilient_parsing:
        return
    import platform
    from importlib import metadata

    click.echo(f"isograd, version {__version__}")
    click.echo(f"Python {platform.python_version()}")
    for name in FRAMEWORKS:
        found = next(iter(metadata.distributions(name=name)), None)
        missing = f"not found; install it: pip install 'isograd[{name}]'"
        click.echo(f"{name} {missing if found is None else found.version}")
    context.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; arguments default to the process's own."""
    try:
        status = isograd.main(arguments, prog_name="isograd", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return UNABLE
    except click.ClickException as error:
        _report_usage(error)
        return UNABLE
    except (click.Abort, KeyboardInterrupt):
        say("interrupted. No report was written.")
        return INTERRUPTED
    except IsogradError as error:
        report_error(error)
        return UNABLE
    except Exception as error:
        report_unexpected(error)
        return UNABLE
    return status if isinstance(status, int) else 0


def _report_usage(error: click.ClickException) -> None:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else "isograd"
    message = error.format_message().rstrip(".")
    say(f"{message}{'' if message.endswith('?') else '.'} See `{command} --help`.")

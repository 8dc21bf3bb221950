"""What every verb has in common: its outputs, their checks, progress, and the exit status.

A verb is one click command.  Its function gets its own arguments and a listener for progress, and
returns its report object; all else is done here::

    @verb(document="isograd.watch.document:document", sarif=True)
    @click.argument("run", type=INPUT)
    @click.option("--every", type=int, default=1, help="Look only at every so many steps.")
    def command(run: Path, every: int, progress: Progress) -> Report:
        \"""Is this training run healthy?  (the first line of `isograd watch --help`)\"""
        from isograd.watch.run import watch_run   # imported when it runs, so that help stays fast

        return watch_run(run, every=every, progress=progress)

The report object is a subclass of `isograd.report.base.Report`: `to_data()`, `needs_action`.
`document` names the function that draws it, as `package.module:function`; with `page` another one
draws the HTML page.  The verb then has --json, --html, --quiet (and --sarif, and what `outputs`
names), and the exit status 1 where the report needs action.  To make it known, add its line to
`VERBS` in `isograd/cli/entry.py`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isograd.cli.config import ConfiguredCommand
from isograd.cli.inputs import OUTPUT
from isograd.cli.outputs import STANDARD_OUTPUT, check_outputs, write_output
from isograd.errors import UsageError
from isograd.files import standard_output_kept

if TYPE_CHECKING:
    from isograd.progress import SilentProgress
    from isograd.report.base import Report
    from isograd.report.document import Document
    from isograd.report.screen_progress import ScreenProgress

_JSON_HELP = (
    "Write the report as JSON; `-` is standard output and moves the text to standard error."
)

#: Where the running command keeps its outputs, and that its text goes to standard error.
_FILES = "isograd.outputs"
_TO_ERROR = "isograd.to_error"


@dataclass(frozen=True)
class Output:
    """A further output of a verb: its option, the option's help, and what makes it.

    make: `package.module:function`, called with the report; returns text or bytes.
    check: called before the work begins where the output is asked for; raises IsogradError.
    """

    name: str
    help: str
    make: str
    is_text: bool = True
    check: str = ""


def verb(
    *,
    document: str,
    page: str = "",
    sarif: bool = False,
    outputs: Sequence[Output] = (),
    name: str | None = None,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a click command of a function that returns a Report.

    document, page: functions that take the report and return a Document, as
    `package.module:function`; page is for HTML and defaults to document.
    A function that returns an int has done everything itself, and that is the exit status.
    """
    known = _known(page or document, document if sarif else "", outputs)

    def decorate(function: Callable[..., Any]) -> click.Command:
        @click.pass_context
        def run(context: click.Context, /, **given: Any) -> int:
            quiet, is_all = given.pop("quiet"), given.pop("is_all")
            files = {one.name: given.pop(f"{one.name}_file") for one in known}
            context.meta[_FILES] = files
            _check(context, known, files)
            is_taken = STANDARD_OUTPUT in files.values()
            with _progress(context, quiet) as progress, standard_output_kept(is_taken):
                report = function(**given, progress=progress)
            if isinstance(report, int):
                return report
            drawn: Document = _load(document)(report)
            for one in known:
                file = files[one.name]
                if file is not None:
                    write_output(file, _made(one, report, drawn, document))
            to_error = is_taken or _TO_ERROR in context.meta
            _show(drawn, quiet=quiet, is_all=is_all, to_error=to_error)
            return 1 if report.needs_action else 0

        run.__doc__ = function.__doc__
        run.__name__ = function.__name__
        run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        for option in _options(known):
            run = option(run)
        return click.command(name, cls=ConfiguredCommand)(run)

    return decorate


def _known(page: str, sarif: str, outputs: Sequence[Output]) -> list[Output]:
    """Every output of a verb: those that all have, SARIF, and its own."""
    known = [Output("json", _JSON_HELP, "")]
    known.append(Output("html", "Write one HTML page, which needs no network.", page, False))
    if sarif:
        known.append(Output("sarif", "Write SARIF for code scanning.", sarif))
    return [*known, *outputs]


def stacked(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Options that several verbs share, as one decorator."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _options(known: Sequence[Output]) -> Iterator[Callable[[Any], Any]]:
    """The options of the outputs, and those of every verb; the last is shown first."""
    for one in reversed(known):
        name = f"{one.name}_file"
        yield click.option(f"--{one.name}", name, type=OUTPUT, metavar="FILE", help=one.help)
    yield click.option("--all", "is_all", is_flag=True, help="Show every entry of each list.")
    yield click.option("--quiet", is_flag=True, help="Show no progress, and only the last line.")


def is_asked_for(output: str) -> bool:
    """Whether the running verb was asked for this output, as "html"."""
    return click.get_current_context().meta[_FILES].get(output) is not None


def output_files() -> tuple[Path, ...]:
    """The files that the running verb writes its reports to."""
    files: dict[str, Path | None] = click.get_current_context().meta[_FILES]
    return tuple(file for file in files.values() if file and file != STANDARD_OUTPUT)


def text_to_error() -> bool:
    """Move the running verb's text to standard error; whether a report has standard output."""
    meta = click.get_current_context().meta
    is_taken = STANDARD_OUTPUT in meta[_FILES].values()
    meta[_TO_ERROR] = True
    return is_taken


def show_before(text: str) -> None:
    """Show a text before the running verb's report, where that goes."""
    from isograd.cli.screen import show

    to_error = STANDARD_OUTPUT in click.get_current_context().meta[_FILES].values()
    show(lambda width, colour: text, to_error=to_error)


def _check(context: click.Context, known: Sequence[Output], files: dict[str, Path | None]) -> None:
    """Raise UsageError for outputs that cannot be written, before the work begins."""
    inputs: list[Path] = []
    for parameter in context.command.params:
        if isinstance(parameter, click.Argument):
            value = context.params.get(parameter.name or "")
            named = value if isinstance(value, tuple) else (value,)
            inputs += [Path(one) for one in named if one is not None and "://" not in str(one)]
    check_outputs(inputs, files, only_files=[one.name for one in known if not one.is_text])
    for one in known:
        if one.check and files[one.name] is not None:
            _load(one.check)()


def _made(one: Output, report: Report, drawn: Document, document: str) -> str | bytes:
    """The content of one output."""
    if one.name == "json":
        return report.to_json()
    if one.name == "sarif":
        from isograd.report.render_sarif import render_sarif

        return render_sarif(drawn)
    if one.name == "html":
        from isograd.report.render_html import render_html

        return render_html(drawn if one.make == document else _load(one.make)(report))
    content = _load(one.make)(report)
    assert isinstance(content, (str, bytes))
    return content


def _show(document: Document, *, quiet: bool, is_all: bool, to_error: bool) -> None:
    from isograd.cli.screen import show
    from isograd.report.render_text import MOST_ENTRIES, render_line, render_text

    most = sys.maxsize if is_all else MOST_ENTRIES
    show(
        lambda width, colour: (
            render_line(document)
            if quiet
            else render_text(document, width=width, colour=colour, most=most)
        ),
        to_error=to_error,
    )


@contextmanager
def _progress(context: click.Context, quiet: bool) -> Iterator[ScreenProgress | SilentProgress]:
    """A listener that draws on standard error, or says nothing."""
    if quiet:
        from isograd.progress import SilentProgress

        yield SilentProgress()
        return
    from isograd.report.screen_progress import ScreenProgress

    with ScreenProgress(sys.stderr, context.info_name or "") as progress:
        yield progress


def _load(name: str) -> Callable[..., Any]:
    """What `package.module:name` names."""
    module, _, attribute = name.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not callable(found):
        raise UsageError(f"{name} is no function", "This is a fault of isograd; please report it.")
    return found  # type: ignore[no-any-return]

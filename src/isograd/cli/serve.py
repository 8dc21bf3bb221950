"""`isograd serve`: parse, one call, exit status."""

from __future__ import annotations

from pathlib import Path

import click

from isograd.cli.inputs import OUTPUT


@click.command()
@click.argument("folders", nargs=-1, type=OUTPUT, metavar="[FOLDER …]")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: 8765, or the next free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Listen elsewhere than on this machine alone; the token is still needed.",
)
@click.option(
    "--export",
    "export_folder",
    type=OUTPUT,
    metavar="FOLDER",
    help="Write the same pages as static files into this new folder, and end.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(
    folders: tuple[Path, ...], port: int | None, host: str, export_folder: Path | None, quiet: bool
) -> int:
    """Show runs, reports and files below folders as web pages.

    Without FOLDER, the current one. Prints one address with a token, and listens on this machine
    alone until it is interrupted. Nothing is written and nothing leaves the machine.

    Exit status: 0 ended; 2 isograd was called wrongly or could not do its work.
    """
    from isograd.serve.run import export_pages, serve

    wanted = folders or (Path(),)
    if export_folder is None:
        serve(wanted, port, host, lambda text: click.echo(text))
        return 0
    from isograd.progress import SilentProgress

    if quiet:
        count = export_pages(wanted, export_folder, SilentProgress())
    else:
        import sys

        from isograd.report.screen_progress import ScreenProgress

        with ScreenProgress(sys.stderr, "serve") as progress:
            count = export_pages(wanted, export_folder, progress)
    click.echo(
        f"{count} pages are written to {export_folder}; open {export_folder / 'index.html'}."
    )
    return 0

"""`isograd lsp`: check that the extra is there, then serve until the editor ends it."""

from __future__ import annotations

import importlib.util

import click

from isograd.errors import UsageError

_NEEDED = ("pygls", "lsprotocol")


@click.command()
@click.option("--stdio", is_flag=True, help="Speak over standard input and output; always so.")
def command(stdio: bool) -> int:
    """Show findings of scan in an editor while code is written (language server).

    A language server: diagnostics for what is missing, differs or is a hazard, hovers with the
    difference and its evidence, code actions for rewrites, completion of MindSpore's names. An
    editor starts it; docs/editors.md says how in VS Code, PyCharm and Neovim.

    Exit status: 0 the editor shut it down; 1 the editor went away without; 2 isograd was called
    wrongly or could not do its work.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"isograd lsp needs {missing[0]}, which is not installed",
            "Install it: pip install 'isograd[lsp]'.",
        )
    from isograd.lsp.server import run

    return run()

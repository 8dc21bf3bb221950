"""The command line: parse, one call, render, exit status.

Exit status of every verb: 0 clean, 1 something that a person must act on, 2 isograd was called
wrongly or could not do its work, 130 interrupted.
"""

from isograd.cli.entry import main

__all__ = ["main"]

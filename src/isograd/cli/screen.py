"""Text to the screen: in the width and colours that it has, in the encoding that it takes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable

#: Width in characters where the output is not a terminal.
PLAIN_WIDTH = 120


def show(render: Callable[[int, bool], str], *, to_error: bool) -> None:
    """Write what `render(width, colour)` returns to standard output or standard error."""
    stream = sys.stderr if to_error else sys.stdout
    is_terminal = stream.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else PLAIN_WIDTH
    colour = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = stream.encoding or "utf-8"
    text = render(width, colour).encode(encoding, errors="backslashreplace").decode(encoding)
    stream.write(text)
    stream.flush()

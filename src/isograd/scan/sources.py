"""Finds the files of a project and reads them, whatever state they are in.

Nothing here raises for a bad file: it becomes a Problem, and the rest goes on.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import stat
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from isograd.scan.model import Problem
from isograd.scan.selection import Skipper

#: Files above this size, in bytes, are tables rather than code, and are left out with a finding.
LARGEST_BYTES = 8_000_000
_SUFFIXES = (".py", ".ipynb")
_SKIPPED = frozenset(("__pycache__", "node_modules", "site-packages"))
_PYTHON_2 = re.compile(
    r"^\s*(print\s+[\"'\w]|exec\s+[\"'\w]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)|<>|\bur[\"']",
    re.MULTILINE,
)
_MAGIC = re.compile(r"^(\s*)([%!?].*|\w+\s*=\s*[%!].*|.*\?)$")


@dataclass(slots=True)
class Source:
    """One file's code as a tree; cells maps a line of the tree to (cell, line) of a notebook."""

    file: str
    text: str
    lines: int
    tree: ast.Module
    problems: list[Problem] = field(default_factory=list)
    cells: list[tuple[int, int]] = field(default_factory=list)

    def place(self, line: int) -> tuple[int, int]:
        """(cell, line) of a line of the tree; cell 0 where the file is no notebook."""
        if not self.cells:
            return 0, line
        return self.cells[min(max(line, 1), len(self.cells)) - 1]


def find_files(
    root: Path, problems: list[Problem], skipper: Skipper | None = None
) -> Iterator[Path]:
    """Every Python file and notebook below a folder, in a fixed order; each folder once."""
    if root.is_file():
        yield root
        return
    seen: set[str] = set()
    stack = [str(root)]
    while stack:
        folder = stack.pop()
        real = os.path.realpath(folder)
        if real in seen:
            message = "the folder was already scanned under another name"
            _add(
                problems, "symlink-loop", folder, 0, message, "Nothing is lost: it is scanned once."
            )
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as iterator:
                entries = sorted(iterator, key=lambda entry: entry.name)
        except OSError as error:
            _add(
                problems,
                "unreadable",
                folder,
                0,
                f"the folder cannot be read: {_reason(error)}",
                "Give it read permission, then scan again.",
            )
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries) and folder != str(root):
            continue
        if skipper is not None:
            entries = [entry for entry in entries if not _is_skipped(entry, skipper)]
        yield from _files(entries, problems)
        stack += [entry.path for entry in reversed(entries) if _is_folder(entry)]


def _files(entries: list[os.DirEntry[str]], problems: list[Problem]) -> Iterator[Path]:
    for entry in entries:
        if not entry.name.endswith(_SUFFIXES):
            continue
        try:
            mode = entry.stat().st_mode
        except OSError as error:
            _add(
                problems,
                "unreadable",
                entry.path,
                0,
                f"it cannot be read: {_reason(error)}",
                "Repair or remove the link.",
            )
            continue
        if stat.S_ISREG(mode):
            yield Path(entry.path)


def _is_skipped(entry: os.DirEntry[str], skipper: Skipper) -> bool:
    """Whether this code, or folder that may hold some, is left out."""
    return (entry.name.endswith(_SUFFIXES) or _is_folder(entry)) and skipper.skips(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name in _SKIPPED:
        return False
    try:
        return entry.is_dir()
    except OSError:
        return False


def read_source(path: Path, file: str, problems: list[Problem]) -> Source | None:
    """The file as a tree; None where nothing of it can be scanned, which is then a problem."""
    raw = read_bytes(path, file, problems)
    if raw is None:
        return None
    if path.suffix == ".ipynb":
        return notebook(raw, file, problems)
    return parse_text(decode(raw, file, problems), file, problems)


def read_bytes(path: Path, file: str, problems: list[Problem]) -> bytes | None:
    """The bytes of the file, unless it is unreadable or huge."""
    try:
        size_bytes = path.stat().st_size
        if size_bytes > LARGEST_BYTES:
            _add(
                problems,
                "too-large",
                file,
                0,
                f"the file has {size_bytes / 1e6:.0f} MB and was not scanned",
                "Split the code from its data.",
            )
            return None
        return path.read_bytes()
    except OSError as error:
        _add(
            problems,
            "unreadable",
            file,
            0,
            f"the file cannot be read: {_reason(error)}",
            "Give it read permission, then scan again.",
        )
        return None


def decode(raw: bytes, file: str, problems: list[Problem]) -> str:
    """The text, in the encoding that the file declares; otherwise a finding and Latin-1."""
    try:
        return raw.decode("utf-8-sig") if not _declares(raw) else _declared(raw)
    except (SyntaxError, LookupError, UnicodeDecodeError):
        pass
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin-1"
    message = f"the file is not in the encoding that it declares; it was read as {encoding}"
    advice = "Save it as UTF-8, or declare its encoding in the first line."
    _add(problems, "encoding", file, 1, message, advice)
    return raw.decode(encoding, errors="replace")


def _declares(raw: bytes) -> bool:
    return b"coding" in raw[:200].split(b"\n\n")[0]


def _declared(raw: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    return raw.decode(encoding)


def parse_text(text: str, file: str, problems: list[Problem]) -> Source | None:
    """Code as a tree; None and a problem where Python cannot parse it."""
    tree = _parse(text, file, problems, text, 0)
    if tree is None:
        return None
    return Source(file, text, text.count("\n") + (not text.endswith("\n") and bool(text)), tree)


def _parse(
    text: str, file: str, problems: list[Problem], whole: str, cell: int
) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line, message = error.lineno or 0, error.msg or "invalid syntax"
        is_old = _PYTHON_2.search(whole) is not None
    except (ValueError, RecursionError, MemoryError) as error:
        line, message, is_old = 0, str(error).split("\n")[0] or type(error).__name__, False
    if is_old:
        _add(
            problems,
            "python-2",
            file,
            line,
            f"the code is Python 2: {message}",
            "Convert it to Python 3 first.",
            cell,
        )
    else:
        _add(
            problems,
            "syntax-error",
            file,
            line,
            f"Python cannot parse it: {message}",
            "Correct it, then scan again.",
            cell,
        )
    return None


def notebook(raw: bytes, file: str, problems: list[Problem]) -> Source | None:
    """All code cells as one tree; a cell that does not parse is a problem of its own."""
    try:
        document = json.loads(raw)
        cells = document["cells"] if "cells" in document else document["worksheets"][0]["cells"]
        codes = [_code(cell) for cell in cells]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        _add(
            problems,
            "notebook",
            file,
            0,
            "it is not a notebook that can be read",
            "Save it again with Jupyter.",
        )
        return None
    source = Source(file, "", 0, ast.Module([], []))
    texts: list[str] = []
    for number, code in enumerate(codes, 1):
        if code is None:
            continue
        lines = [_without_magic(line) for line in code.split("\n")]
        cell_text = "\n".join(lines)
        if lines and lines[0].lstrip().startswith("# %%"):
            continue
        tree = _parse(cell_text, file, problems, cell_text, number)
        if tree is not None:
            ast.increment_lineno(tree, len(source.cells))
            source.tree.body += tree.body
        texts.append(cell_text)
        source.cells += [(number, line) for line in range(1, len(lines) + 1)]
    source.text = "\n".join(texts)
    source.lines = len(source.cells)
    return source


def _code(cell: dict[str, object]) -> str | None:
    if cell.get("cell_type") != "code":
        return None
    code = cell.get("source", cell.get("input", ""))
    return "".join(map(str, code)) if isinstance(code, list) else str(code)


def _without_magic(line: str) -> str:
    """IPython's own commands do nothing here; `%%cell` magics are not Python at all."""
    found = _MAGIC.match(line)
    if found is None or "#" in line.partition("?")[0]:
        return line
    return f"# {line.strip()}" if line.startswith("%%") else f"{found.group(1)}pass"


def _add(
    problems: list[Problem],
    code: str,
    file: str,
    line: int,
    message: str,
    advice: str,
    cell: int = 0,
) -> None:
    problems.append(Problem(code, file, line, message, advice, cell))


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()

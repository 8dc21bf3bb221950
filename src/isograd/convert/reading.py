"""Files as bytes, text and tree, so that what is written again is what was read."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from isograd.convert.model import Finding
from isograd.convert.notebooks import SUFFIX, Notebook, read_notebook
from isograd.convert.package_aliases import import_packages
from isograd.convert.text import Encoding
from isograd.scan.sources import LARGEST_BYTES, Source

#: A text that stands alone, as docstrings do; any other text; a comment.
_TEXTS_AND_COMMENTS = re.compile(
    rb"""(?P<alone>^[ \t]*[rRuU]?(?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3})[ \t]*$)|"""
    rb"""(?P<text>\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"""
    rb"""\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|(?P<comment>\#[^\n]*)""",
    re.MULTILINE,
)


def without_comments(code: bytes) -> bytes:
    """Code without its comments and docstrings, in which no fact about it is looked for."""
    return _TEXTS_AND_COMMENTS.sub(lambda found: found["text"] or b"", code)


@dataclass(frozen=True)
class ReadFile:
    """A Python file; source is None where it is carried over as it is, for the reason given."""

    raw: bytes
    source: Source | None
    encoding: Encoding
    finding: Finding | None = None
    notebook: Notebook | None = None

    @cached_property
    def code(self) -> bytes:
        """The Python in it, without comments and texts that stand alone."""
        raw = self.raw if self.notebook is None else self.notebook.text.encode()
        return without_comments(raw)

    def written(self, text: str) -> bytes:
        """The file with a converted text."""
        if self.notebook is not None:
            return self.notebook.written(text)
        is_changed = self.source is not None and text != self.source.text
        return self.encoding.encode(text) if is_changed else self.raw

    def located(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Findings about the text by their places in the file, those of reading it before them."""
        if self.notebook is None:
            return findings
        found = map(self.notebook.located, findings)
        return tuple(sorted([*self.notebook.findings, *found], key=lambda f: (f.cell, f)))


def read_file(path: Path, file: str) -> ReadFile:
    """Read and parse a file; raises OSError where it cannot be read."""
    raw = path.read_bytes()
    plain = Encoding("utf-8")
    if len(raw) > LARGEST_BYTES:
        said = _finding(file, "too-large", "the file is too large for code and was copied")
        return ReadFile(raw, None, plain, said)
    if path.suffix == SUFFIX:
        return _of_notebook(raw, file)
    try:
        text, encoding = _decoded(raw)
    except (SyntaxError, LookupError, UnicodeDecodeError) as error:
        said = _finding(file, "encoding", f"the file cannot be decoded ({error}) and was copied")
        return ReadFile(raw, None, plain, said)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            read = import_packages(text, tree)
            tree = tree if read == text else ast.parse(read)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 0) or 0
        reason = getattr(error, "msg", "") or str(error) or type(error).__name__
        message = f"Python cannot parse it ({reason}), so it was copied"
        return ReadFile(raw, None, encoding, _finding(file, "syntax-error", message, line))
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    return ReadFile(raw, Source(file, read, lines, tree), encoding)


def _of_notebook(raw: bytes, file: str) -> ReadFile:
    read = read_notebook(raw, file)
    plain = Encoding("utf-8")
    if isinstance(read, Finding):
        return ReadFile(raw, None, plain, read)
    return ReadFile(raw, read.source(file), plain, notebook=read)


def _decoded(raw: bytes) -> tuple[str, Encoding]:
    has_mark = raw.startswith(codecs.BOM_UTF8)
    name = "utf-8"
    if b"coding" in raw[:400]:
        name, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        name = "utf-8" if name == "utf-8-sig" else name
    body = raw[len(codecs.BOM_UTF8) :] if has_mark else raw
    return body.decode(name), Encoding(name, has_mark)


def _finding(file: str, code: str, message: str, line: int = 0) -> Finding:
    advice = "Correct it and convert it again."
    return Finding(file, line, 1 if line else 0, code, message, advice)

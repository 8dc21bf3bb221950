"""Notebooks: their code cells as one text, in their order, and that text as a notebook again.

A cell begins with a line `# %% cell 3` in the text.  What is IPython's and no Python's (magics such
as `%matplotlib inline`, `!pip install`, `files = !ls`, `%%bash` cells) is kept as it is: the text
has a comment or `pass` in its place.  Why plain JSON: docs/decisions/notebooks.md.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from isograd.convert.model import Finding, Level
from isograd.scan.sources import Source

SUFFIX = ".ipynb"
_INDENT = 1
#: IPython's own lines: magics, the shell, and questions about a name.
_ESCAPED = re.compile(r"^(?P<indent>\s*)(?P<code>[%!?].*|[\w.]+\?{1,2}\s*)$")
_ASSIGNED = re.compile(r"^(?P<indent>\s*)(?P<name>\w+)\s*=\s*[%!].*$")
#: Magics that run the Python behind them in the notebook's own names.
_TIMED = re.compile(r"^(?P<indent>\s*)(?P<magic>%(?:time|timeit)\s+)(?P<code>[^-\s].*)$")
_TIMED_CELL = re.compile(r"^\s*%%(time|timeit|capture|prun)\b")
_ADVICE = "Correct it and convert it again."
_MAGIC = "this line of IPython's was kept as it is; what it names is not converted"
_OTHER = "this cell is not run as Python here and was kept as it is"
_NAMES_TORCH = re.compile(r"\btorch\b")


@dataclass
class Notebook:
    """A notebook while it is converted.

    document: its JSON.  cells: (cell, line) of each line of the text, cells from 1.  kept: what
    stands in the notebook for a placeholder of the text.
    """

    document: dict[str, Any]
    text: str = ""
    marker: str = "# %% cell "
    cells: list[tuple[int, int]] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def source(self, file: str) -> Source:
        """The text as a tree; a cell that Python cannot parse is not in it."""
        lines = sum(line > 0 for _, line in self.cells)
        return Source(file, self.text, lines, ast.parse(self.text), cells=self.cells)

    def located(self, finding: Finding) -> Finding:
        """A finding about a line of the text, with its cell and the line there."""
        if not 0 < finding.line <= len(self.cells):
            return finding
        cell, line = self.cells[finding.line - 1]
        return replace(finding, line=max(line, 1), cell=cell)

    def written(self, text: str) -> bytes:
        """The notebook with a converted text: its cells in their order, without outputs."""
        codes: dict[int, list[str]] = {}
        lines: list[str] = []
        for line in text.split("\n"):
            named = line.removeprefix(self.marker)
            if line.startswith(self.marker) and named.isdigit():
                lines = codes.setdefault(int(named), [])
            else:
                lines.append(self._restored(line))
        for number, cell in enumerate(_cells_of(self.document), 1):
            if cell.get("cell_type") != "code":
                continue
            cell["outputs"] = []
            cell["execution_count" if "source" in cell else "prompt_number"] = None
            if number in codes:
                _set_code(cell, "\n".join(codes[number]).rstrip("\n"))
        raw = json.dumps(self.document, indent=_INDENT, ensure_ascii=False)
        return f"{raw}\n".encode()

    def _restored(self, line: str) -> str:
        before, sign, key = line.rpartition(f"#{self.marker}")
        if not sign or key not in self.kept:
            return line
        kept = self.kept[key]
        indent = before[: len(before) - len(before.lstrip())]
        if kept.endswith("{}"):  # a magic before code that was converted
            return f"{indent}{kept[:-2]}{before.strip()}"
        return f"{indent}{kept}"


def read_notebook(raw: bytes, file: str) -> Notebook | Finding:
    """The notebook in a file's bytes, or why it cannot be read."""
    try:
        document = json.loads(raw)
        cells = _cells_of(document)
        codes = [_code_of(cell) for cell in cells]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        message = "it is not a notebook that can be read, so it was copied"
        return Finding(file, 0, 0, "notebook", message, "Save it again with Jupyter.")
    notebook = Notebook(document)
    everything = "\n".join(code for code in codes if code)
    while notebook.marker in everything:
        notebook.marker = f"{notebook.marker}of the notebook "
    parts: list[str] = []
    for number, code in enumerate(codes, 1):
        if code is None or not _is_ours(code, number, file, notebook):
            continue
        lines = [
            _plain(line, (number, place), file, notebook)
            for place, line in enumerate(code.split("\n"), 1)
        ]
        if not _parses("\n".join(lines), number, file, notebook):
            continue
        parts += [f"{notebook.marker}{number}", *lines]
        notebook.cells += [(number, place) for place in range(len(lines) + 1)]
    notebook.text = "\n".join(parts) + "\n"
    return notebook


def line_of(finding: Finding, text: str) -> int:
    """The line of a notebook's text that a finding is about."""
    marked = [at for at, line in enumerate(text.split("\n"), 1) if line.startswith("# %% cell ")]
    for at in marked if finding.cell else ():
        if text.split("\n")[at - 1].endswith(f" {finding.cell}"):
            return at + finding.line
    return finding.line


def _cells_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    cells = document["cells"] if "cells" in document else document["worksheets"][0]["cells"]
    return list(cells)


def _code_of(cell: dict[str, Any]) -> str | None:
    if cell.get("cell_type") != "code":
        return None
    code = cell.get("source", cell.get("input", ""))
    return "".join(map(str, code)) if isinstance(code, list) else str(code)


def _set_code(cell: dict[str, Any], code: str) -> None:
    """Write a cell's code in the form in which it was: a text, or a list of lines."""
    key = "source" if "source" in cell else "input"
    cell[key] = code.splitlines(keepends=True) if isinstance(cell.get(key), list) else code


def _is_ours(code: str, number: int, file: str, notebook: Notebook) -> bool:
    """Whether a cell is Python of the notebook's; `%%bash` and its like are kept."""
    first = code.lstrip().split("\n", 1)[0]
    if not first.startswith("%%") or _TIMED_CELL.match(first):
        return True
    if _NAMES_TORCH.search(code):
        found = Finding(file, 1, 1, "notebook-cell", _OTHER, "Convert it by hand.", cell=number)
        notebook.findings.append(found)
    return False


def _plain(line: str, at: tuple[int, int], file: str, notebook: Notebook) -> str:
    """A line as Python: what is IPython's is a comment, or does nothing where a block needs it."""
    timed = _TIMED.match(line)
    if timed is not None and _is_python(timed["code"]):
        key = _keep(f"{timed['magic']}{{}}", notebook)
        return f"{timed['indent']}{timed['code']}  #{notebook.marker}{key}"
    assigned, escaped = _ASSIGNED.match(line), _ESCAPED.match(line)
    if assigned is None and escaped is None:
        return line
    if _NAMES_TORCH.search(line) and not line.lstrip().startswith(("!", "%pip", "%conda")):
        found = Finding(file, at[1], 1, "notebook-magic", _MAGIC, level=Level.LOOK, cell=at[0])
        notebook.findings.append(found)
    sign = f"#{notebook.marker}{_keep(line.strip(), notebook)}"
    if assigned is not None:
        return f"{assigned['indent']}{assigned['name']} = None  {sign}"
    indent = escaped["indent"] if escaped is not None else ""
    return f"{indent}pass  {sign}" if indent else sign


def _keep(text: str, notebook: Notebook) -> str:
    key = str(len(notebook.kept))
    notebook.kept[key] = text
    return key


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _parses(code: str, number: int, file: str, notebook: Notebook) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "msg", "") or str(error) or type(error).__name__
        message = f"Python cannot parse this cell ({reason}), so it was kept as it is"
        line = getattr(error, "lineno", 0) or 1
        notebook.findings.append(
            Finding(file, line, 1, "syntax-error", message, _ADVICE, cell=number)
        )
        return False
    return True

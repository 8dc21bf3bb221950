"""The files of a project whose compiled steps make dataclasses or named tuples."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path

from isograd.convert.training.record_dictionaries import is_ordered_dictionary, tells_ordered
from isograd.convert.training.record_uses import records_written
from isograd.convert.training.record_writing import edits_of
from isograd.convert.training.records import Imports, RecordError, Records
from isograd.convert.training.rewrite import Rewritten, edited_again
from isograd.scan.project import ModuleIndex


def imports_of(index: ModuleIndex, names: Mapping[Path, str]) -> Imports:
    """How the files of a project import each other; names: of all of them."""
    paths = {name: path for path, name in names.items()}

    def file_of(name: str, module: str) -> str:
        found = index.file_of(module, paths[name].parent)
        return "" if found is None else names.get(found, "")

    return Imports(file_of, lambda name: index.packages.get(paths[name], ""))


def with_records(
    files: Mapping[str, Rewritten],
    trees: Mapping[str, ast.Module],
    imports: Imports,
    text: Callable[[str], str],
) -> dict[str, Rewritten]:
    """Files that are written anew, now also those that make what no static graph holds.

    files: those with steps.  trees: of all files.  text: that of a file.  Raises RecordError where
    all steps have to stay eager.
    """
    now = {n: ast.parse(files[n].text) if n in files else tree for n, tree in trees.items()}
    try:
        written = records_written(now, imports)
    except RecordError as error:
        line: int = getattr(error.node, "lineno", 1)
        line = files[error.file].origins[line - 1] if error.file in files else line
        at = ast.Pass(lineno=line, col_offset=getattr(error.node, "col_offset", 0))
        raise RecordError(error.file, at, str(error)) from error
    found = dict(files)
    for name, made in written.items():
        own = files[name].text if name in files else text(name)
        found[name] = edited_again(files.get(name), own, edits_of(own, made))
    return found


class KnownRecords:
    """Which constructs of a project make what is looked at with all that uses it."""

    def __init__(self, trees: Mapping[str, ast.Module], imports: Imports) -> None:
        self._trees, self._imports = trees, imports
        self._records: Records | None = None

    def makes_one(self, file: str, line: int, column: int) -> bool:
        """Whether the call at a place does."""
        return any(self._makes_one(call, file) for call in self._calls(file, line, column))

    def _calls(self, file: str, line: int, column: int) -> list[ast.Call]:
        return [
            node
            for node in ast.walk(self._trees[file])
            if isinstance(node, ast.Call) and (node.lineno, node.col_offset) == (line, column)
        ]

    def _makes_one(self, call: ast.Call, file: str) -> bool:
        if self._records is None:
            self._records = Records(self._trees, self._imports)
        if self._records.named(call.func, file) is not None:
            return True
        scopes = self._records.scopes
        if not is_ordered_dictionary(call, scopes[file]):
            return False
        return not tells_ordered(self._trees.values(), (scopes[name] for name in self._trees))

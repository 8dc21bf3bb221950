"""One file from its source to its port: passes over the nodes, imports, comments, a last look."""

from __future__ import annotations

import ast
import re
import symtable
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

from isograd.convert.doubles import INSTEAD_OF_SINGLES
from isograd.convert.entries import Entries
from isograd.convert.facts import Facts
from isograd.convert.file import FileEdit
from isograd.convert.imports import write_imports
from isograd.convert.model import FileConversion, Finding, RuntimeUse
from isograd.convert.names import Index, star_names
from isograd.convert.passes import passes_by_round
from isograd.convert.passes.complex_numbers import INSTEAD
from isograd.convert.passes.imports_by_name import imports_torch_by_name
from isograd.convert.runtime_uses import uses_of
from isograd.convert.settings import Settings
from isograd.convert.spelling import COMPOSITES, Spelling, bound_packages
from isograd.convert.text import Text, narrow
from isograd.convert.training.names import BESIDE, COMPILED
from isograd.convert.tree import Tree, read_tree
from isograd.scan.sources import Source
from isograd.scan.values import is_module

_MARK = "  # isograd: "
_LONGEST = 200


@dataclass(frozen=True)
class Place:
    """Where a file stands in its project: its module's name and package, and where the generated
    module lies (how many packages up, 0 beside it)."""

    module: str = ""
    package: str = ""
    level: int = 0
    generated: str = "torch_semantics"
    #: The name under which the project keeps a module that this file imports; empty if foreign.
    canonical: Callable[[str], str] = str


@dataclass(frozen=True)
class Port:
    """A file's port: its text, what is said of it, and the runtime functions that it uses."""

    text: str
    findings: tuple[Finding, ...] = ()
    uses: int = 0
    converted: int = 0
    composites: frozenset[str] = frozenset()
    runtime: tuple[RuntimeUse, ...] = ()


#: Nodes that are asked for whatever the passes look at.
_ALWAYS = (ast.Name, ast.AnnAssign, ast.NamedExpr, ast.Import, ast.ImportFrom)
#: A file without these imports nothing by a text.
_IMPORTS = re.compile(r"import_|_import\b|find_spec")


class Engine:
    """Converts the files of a project one after the other."""

    def __init__(self, entries: Entries, index: Index, settings: Settings) -> None:
        self._entries = entries
        self._index = index
        self._settings = settings
        self._rounds = [
            {kind: [item.convert for item in passes] for kind, passes in by_kind.items()}
            for by_kind in passes_by_round()
        ]
        self._kinds = {*chain(*self._rounds), *_ALWAYS}

    def read(self, source: Source, facts: Facts, place: Place) -> FileEdit | None:
        """What passes see of a file; None where it does not use torch."""
        tree = read_tree(source.tree, self._kinds)
        imports = tree.of(ast.Import, ast.ImportFrom)
        imported = self._index.read(imports, place.package, place.canonical)
        star_names(tree, imported, self._index.names)
        if not (
            imported.torch
            or imported.third
            or imported.stars
            or _may_use(tree, facts)
            or (_IMPORTS.search(source.text) and imports_torch_by_name(tree))
        ):
            return None
        dropped = {*imported.torch, *(name for _, _, name, _ in imported.third)}
        spelling = Spelling(
            _taken(tree, dropped),
            bound_packages(source.tree, dropped),
            place.generated,
            place.level,
            instead=self._instead(),
        )
        return FileEdit(
            source.file,
            Text(source.text),
            tree,
            facts,
            imported,
            self._index.names,
            self._entries,
            spelling,
            self._settings,
            own_roots=frozenset(self._index.roots),
        )

    def _instead(self) -> dict[str, str]:
        """Names of templates with what replaces them in this project."""
        found = dict(INSTEAD) if self._settings.has_complex else {}
        if self._settings.makes_doubles:
            found |= INSTEAD_OF_SINGLES
        if not self._settings.compiles_steps:
            return found
        return found | (BESIDE if self._settings.records_gradients else COMPILED)

    def convert(self, source: Source, facts: Facts, place: Place) -> Port:
        """The port of a file; the same text where it does not use torch."""
        file = self.read(source, facts, place)
        if file is None:
            return Port(source.text)
        self._run(file)
        asked = self._settings.asked_modules
        write_imports(file, place.package, is_asked=place.module in asked)
        _write_comments(file)
        return self._checked(file, source)

    def _run(self, file: FileEdit) -> None:
        done, formatted = file.done, file.tree.formatted
        for converts in self._rounds:
            for node in file.tree.nodes:
                if node.__class__ not in converts or node in done:
                    continue
                if node in formatted and not file.is_in_place(node):
                    _told(node, file)
                    continue
                for convert in converts[node.__class__]:
                    if convert(node, file):
                        break

    def _checked(self, file: FileEdit, source: Source) -> Port:
        """The port if Python can parse it; else the reference, with that said."""
        text = file.text.result()
        try:
            symtable.symtable(text, source.file, "exec")  # a third faster than a tree of objects
        except (SyntaxError, ValueError, RecursionError) as error:
            message = f"the port of this file would not parse ({error}), so it was left as it is"
            advice = "Please report it with the file; convert it by hand."
            failed = Finding(source.file, 0, 0, "internal-error", message, advice)
            return Port(source.text, (failed,), file.uses, 0)
        findings = tuple(sorted(file.findings))
        used = frozenset(file.spelling.used)
        runtime: tuple[RuntimeUse, ...] = ()
        if used:
            alias = file.spelling.package(COMPOSITES)
            runtime = uses_of(source.file, alias, text, used, file.reasons)
        return Port(text, findings, file.uses, file.converted, used, runtime)


def _told(node: ast.AST, file: FileEdit) -> None:
    """Something of torch inside an f-string, where this Python does not know its place."""
    use = file.use(node)
    if use is not None:
        message = f"{use.api} inside an f-string was not converted"
        advice = "Give it a name on a line before."
        file.finding(file.tree.statement(node), "f-string", message, advice, api=use.api)


def _may_use(tree: Tree, facts: Facts) -> bool:
    """Whether a file that does not import torch defines modules by what it imports of others."""
    imported = [alias.name for node in tree.of(ast.Import) for alias in node.names]
    imported += [node.module or "" for node in tree.of(ast.ImportFrom)]
    if any(name.partition(".")[0] == "mindspore" for name in imported):
        return False
    if any(info.is_module for info in facts.classes.values()):
        return True
    if any(map(is_module, facts.owners.values())):
        return True
    return any(member.is_sure and member.owner is not None for member in facts.members.values())


def _taken(tree: Tree, dropped: set[str]) -> set[str]:
    """The names that a file binds by anything but the imports that go away."""
    taken = tree.stored | (tree.used - dropped)
    for node in tree.of(ast.Import, ast.ImportFrom):
        names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        taken |= names - dropped
    return taken


def _write_comments(file: FileEdit) -> None:
    """Comments that lost their place, and what a person has to finish, beside their statements."""
    above: dict[ast.stmt, list[str]] = defaultdict(list)
    for statement, comments in file.kept.items():
        above[statement] += dict.fromkeys(comments)
    for statement, messages in file.comments.items():
        said = "; ".join(" ".join(message.split()) for message in messages)
        said = said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
        if not _at_end(file, statement, said):
            above[statement].append(f"# isograd: {narrow(said)}")
    for statement, lines in above.items():
        _above(file, statement, lines)


def _at_end(file: FileEdit, statement: ast.stmt, said: str) -> bool:
    """Behind a statement of one line."""
    decorated = getattr(statement, "decorator_list", None)
    if statement.lineno != statement.end_lineno or decorated or hasattr(statement, "body"):
        return False
    if statement in file.removed:
        return False
    at = file.text.line_end(statement.lineno)
    if file.text.covering(at) is not None or file.text.original[at - 1 : at] == "\\":
        return False
    edits = file.text.source(*file.text.span(statement))
    if "\n" in edits:
        return False
    file.text.insert(at, _MARK + narrow(said))
    return True


def _above(file: FileEdit, statement: ast.stmt, lines: Sequence[str]) -> None:
    first = min(
        [statement.lineno, *(part.lineno for part in getattr(statement, "decorator_list", []))]
    )
    at = file.text.line_start(first)
    covering = file.text.covering(at)
    if covering is not None:
        at = file.text.original.rfind("\n", 0, covering.start) + 1
    rest = file.text.original[at:]
    indent = rest[: len(rest) - len(rest.lstrip(" \t"))]
    text = "".join(f"{indent}{line}{file.text.newline}" for line in lines)
    file.text.insert(at, text)


__all__ = ["Engine", "FileConversion", "Place", "Port"]

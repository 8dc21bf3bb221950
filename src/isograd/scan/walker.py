"""One file from its tree to its uses and hazards."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import replace

from isograd.scan.answers import Answers
from isograd.scan.hazards.listener import Hazards
from isograd.scan.model import FileScan, Hazard, Use
from isograd.scan.names import TorchNames, torch_names
from isograd.scan.sources import Source
from isograd.scan.state import UNSURE, ModuleSummary, Project, RawUse, State
from isograd.scan.statements import Statements
from isograd.scan.static_graph import static_graph_hazards
from isograd.scan.values import Foreign, FunctionInfo, Plain, Scope
from isograd.static_graph.scope import FileScope

BUILTINS = Scope(None)
BUILTINS.update({name: Foreign(f"builtins.{name}") for name in dir(builtins)})

#: What ends a line for Python's parser; `str.splitlines` knows more.
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


def scan_source(
    source: Source,
    project: Project,
    answers: Answers,
    *,
    name: str = "",
    package: str = "",
) -> tuple[FileScan, ModuleSummary]:
    """Walk one file; returns what was found, and what other files may import from it."""
    names = torch_names()
    functions: list[FunctionInfo] = []
    listener = Hazards(source.text, functions)
    summary = ModuleSummary(name, is_package=bool(name) and name == package)
    state = State(names, project, summary, package, listener, source.text, functions=functions)
    state.env = Scope(BUILTINS)
    state.env["__name__"] = state.env["__file__"] = Plain()
    walker = Statements(state)
    walker.pending = []
    walker.body(source.tree.body)
    walker.finish(state.env)
    summary.public = _public_names(source.tree)
    summary.exports = {
        key: value
        for key, value in state.env.items()
        if value is not None and value.__class__ is not Plain
    }
    if state.is_for_mindspore:
        # What was taken for torch's by a method's name alone is MindSpore's.
        state.uses = [use for use in state.uses if not use[2].startswith("torch.Tensor.")]
    uses = _uses(source, state.uses, answers, names)
    static = static_graph_hazards(FileScope(source.tree, project.scope, package))
    found = [*listener.finish(state.uses), *static]
    hazards = tuple(_placed(source, h) for h in sorted(found, key=lambda h: (h.line, h.code)))
    return FileScan(source.file, source.lines, uses, hazards), summary


def _uses(
    source: Source, raw: list[RawUse], answers: Answers, names: TorchNames
) -> tuple[Use, ...]:
    """In the order of the file, each place once, columns in characters from 1."""
    lines = None if source.text.isascii() else _LINE_ENDS.split(source.text)
    found: list[Use] = []
    is_plain = not source.cells
    for line, column, api, how in sorted(set(raw)):
        if how is UNSURE:
            answer = answers.unsure(api)
        elif not answers.is_use(api):
            continue
        else:
            answer = answers.of(api)
        if lines is not None and 0 < line <= len(lines):
            column = len(lines[line - 1].encode()[:column].decode(errors="replace"))
        if is_plain:
            found.append(Use(line, column + 1, how, answer))
        else:
            cell, inner = source.place(line)
            found.append(Use(inner, column + 1, how, answer, cell))
    return tuple(found)


def _placed(source: Source, hazard: Hazard) -> Hazard:
    if not source.cells:
        return hazard
    cell, line = source.place(hazard.line)
    return replace(hazard, line=line, cell=cell)


def _public_names(tree: ast.Module) -> tuple[str, ...] | None:
    """What `__all__` lists, where it is written out."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id == "__all__":
                if isinstance(statement.value, (ast.List, ast.Tuple)):
                    return tuple(
                        item.value
                        for item in statement.value.elts
                        if isinstance(item, ast.Constant) and isinstance(item.value, str)
                    )
    return None

"""Training loops that are written anew, where all of a project can call compiled steps."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from isograd.convert.conversion import Run
from isograd.convert.engine import Engine
from isograd.convert.facts import Facts
from isograd.convert.file import FileEdit
from isograd.convert.notebooks import SUFFIX
from isograd.convert.output import place_of
from isograd.convert.run_sources import below, entries_of, located, source_of
from isograd.convert.settings import Settings
from isograd.convert.training import (
    clamped_gradients,
    moved_draws,
    split_lines,
    toggled_marks,
    unrolled_optimizers,
    written_distributions,
    written_leaves,
)
from isograd.convert.training.decision import Decision, in_notebooks, takes_gradients
from isograd.convert.training.draws import Draws, drawing_apis
from isograd.convert.training.inner_gradient_places import API
from isograd.convert.training.inner_gradients import WithFunctions, with_functions
from isograd.convert.training.learning_marks import MARK, marks_of
from isograd.convert.training.project import decide
from isograd.convert.training.recognise import backward_calls
from isograd.convert.training.record_files import imports_of
from isograd.convert.training.rewrite import Rewritten
from isograd.convert.training.second_derivatives import COUNTING, WITHOUT_SECOND
from isograd.scan.sources import Source

Edit = tuple[int, int, str]
#: What writes a file's text otherwise, by a word without which it has nothing to write.
_OTHERWISE = {
    split_lines.WORD: split_lines.split_lines,
    clamped_gradients.WORD: clamped_gradients.clamped_gradients,
    written_distributions.WORD: written_distributions.written_distributions,
    unrolled_optimizers.WORD: unrolled_optimizers.unrolled_optimizers,
    written_leaves.WORD: written_leaves.written_leaves,
}


@dataclass
class _Project:
    """The files as they are looked at; functions: of those that were written otherwise."""

    sources: dict[Path, Source | None]
    facts: dict[Path, Facts]
    functions: dict[Path, WithFunctions] = field(default_factory=dict)


def compile_steps(run: Run) -> None:
    """Decide for a run's project, and write its loops anew."""
    takers = [path for path, facts in run.facts.items() if takes_gradients(facts)]
    notebooks = [below(run, path).as_posix() for path in takers if path.suffix == SUFFIX]
    if notebooks:
        run.training = in_notebooks(notebooks)
    if notebooks or not takers:
        return
    engine = Engine(entries_of(run), run.names, Settings(run.options.target))
    named = {path: below(run, path).as_posix() for path in run.facts}
    paths = {name: path for path, name in named.items()}
    project = _written_otherwise(run, named)

    def read(path: Path) -> FileEdit | None:
        source, place = project.sources[path], place_of(run, below(run, path))
        return None if source is None else engine.read(source, project.facts[path], place)

    edits = [edit for edit in map(read, takers) if edit is not None]
    if not any(backward_calls(edit) for edit in edits):
        return
    sources = project.sources.items()
    decision = decide(
        edits,
        [(named[path], facts) for path, facts in project.facts.items()],
        [(named[path], source.tree) for path, source in sources if source is not None],
        run.knowledge.layer_arguments,
        run.knowledge.entries,
        lambda name: read(paths[name]),
        imports_of(run.index, named),
    )
    run.training = _with_lines(decision, {named[p]: one for p, one in project.functions.items()})
    for name, new in run.training.files.items():
        path, source = paths[name], project.sources[paths[name]]
        if source is not None:
            tree = ast.parse(new.text)
            run.rewritten[path] = Source(source.file, new.text, source.lines, tree)
            run.facts[path], summary = located(run, path, run.rewritten[path])
            run.index.keep(summary)


def _written_otherwise(run: Run, named: Mapping[Path, str]) -> _Project:
    """The project with what steps have another form of: gradients of gradients, clamped ones."""
    sources = {path: source_of(run, path) for path in run.facts}
    project = _with_functions(run, _Project(sources, {**run.facts}), named)
    trees = {path: source.tree for path, source in sources.items() if source is not None}

    def others(path: Path) -> Iterator[ast.Module]:
        return (tree for other, tree in trees.items() if other != path)

    def toggled(path: Path, text: str, tree: ast.Module) -> list[Edit]:
        edits = toggled_marks.toggled_marks(text, tree)
        # Another file may say what learns, or take a step.
        return [] if edits and any(map(toggled_marks.steps_elsewhere, others(path))) else edits

    def moved(path: Path, text: str, tree: ast.Module) -> list[Edit]:
        def is_taken(name: str) -> bool:
            return any(name in moved_draws.names_used(other) for other in others(path))

        return moved_draws.moved_draws(text, tree, is_taken)

    def edit(path: Path, word: str, write: Callable[[str, ast.Module], list[Edit]]) -> None:
        source = project.sources[path]
        edits = write(source.text, source.tree) if source and word in source.text else []
        if source is not None and edits:
            found = project.functions.setdefault(path, WithFunctions(source.text))
            found.edit(edits)
            _read_anew(run, project, path, source, found)

    for path in sources:
        for word, write in _OTHERWISE.items():
            edit(path, word, write)
        edit(path, toggled_marks.WORD, partial(toggled, path))
        edit(path, moved_draws.WORD, partial(moved, path))
    return project


def _read_anew(
    run: Run, project: _Project, path: Path, source: Source, found: WithFunctions
) -> None:
    new = Source(source.file, found.text, source.lines, ast.parse(found.text))
    project.functions[path], project.sources[path] = found, new
    project.facts[path] = located(run, path, new)[0]


def _with_functions(run: Run, plain: _Project, named: Mapping[Path, str]) -> _Project:
    """The project with its gradients of gradients as functions, where all of them can be so."""
    asking = [path for path, facts in run.facts.items() if API in facts.apis]
    if not asking:
        return plain
    written: dict[Path, WithFunctions] = {}
    for path in asking:
        source = plain.sources[path]
        found = None if source is None else with_functions(source.text)
        if found is None:
            return plain
        written[path] = found
    project = _Project({**plain.sources}, {**run.facts})
    for path, source in plain.sources.items():
        if source is None or (path not in written and MARK not in source.text):
            continue
        found = written.get(path) or WithFunctions(source.text)
        marks = marks_of(found.text)
        if marks:
            found.edit(marks)
        if found.new is not None:
            _read_anew(run, project, path, source, found)
    return project if _are_fit(run, project, named) else plain


def _are_fit(run: Run, project: _Project, named: Mapping[Path, str]) -> bool:
    """Whether MindSpore has the gradients of all that the functions of the project compute.

    What they compute once more may not draw, nor count what it sees.
    """
    sources = project.sources.items()
    files = {named[path]: (source.tree, project.facts[path]) for path, source in sources if source}
    refused: dict[str, tuple[str, int] | None] = dict.fromkeys(WITHOUT_SECOND)
    drawing = {**refused, **drawing_apis(run.knowledge.entries), **dict.fromkeys(COUNTING)}
    once = Draws(files, refused, asks_python=False)
    again = Draws(files, drawing, asks_python=False)  # its own is looked for in each step
    for path, found in project.functions.items():
        for inner in found.inner:
            statements = inner.statements(files[named[path]][0])
            draws = again if inner.is_again else once
            if draws.first(named[path], statements, inner.called) is not None:
                return False
    return True


def _with_lines(decision: Decision, functions: Mapping[str, WithFunctions]) -> Decision:
    """A decision about files that were written anew before, at the lines of the reference."""
    first = {name: one.new for name, one in functions.items() if one.new is not None}
    findings = tuple(
        replace(one, line=first[one.file].origins[one.line - 1])
        if one.file in first and one.line
        else one
        for one in decision.findings
    )
    files = {**(first if decision.compiles else {}), **decision.files}
    for name in first.keys() & decision.files.keys():
        new = decision.files[name]
        lines = tuple(first[name].origins[line - 1] for line in new.origins)
        files[name] = Rewritten(new.text, lines)
    return replace(decision, files=files, findings=findings)

"""What a conversion takes of one file: its source, what it says, and what is known of its APIs."""

from __future__ import annotations

from pathlib import Path

from isograd.convert.conversion import Run
from isograd.convert.entries import Entries
from isograd.convert.facts import Facts
from isograd.convert.located import locate
from isograd.convert.reading import read_file
from isograd.knowledge.entry import Entry
from isograd.scan.answers import Answers
from isograd.scan.names import torch_names
from isograd.scan.sources import Source
from isograd.scan.state import ModuleSummary


def below(run: Run, path: Path) -> Path:
    """The path of a file in its project."""
    return path.relative_to(run.base)


def source_of(run: Run, path: Path) -> Source | None:
    """What Python reads of a file; None where it cannot."""
    kept = run.kept.get(path)
    return (kept or read_file(path, below(run, path).as_posix())).source


def located(run: Run, path: Path, source: Source) -> tuple[Facts, ModuleSummary]:
    """What a file says, and what others may import of it."""
    name, package = run.index.names.get(path, ""), run.index.packages.get(path, "")
    seen = run.index.seen_from(path)
    attributes = run.knowledge.layer_attributes
    read = list(run.facts[path].classes.values()) if path in run.facts else []
    mixed = {info.name: info for info in read if info.is_mixed}
    return locate(source, seen, name=name, package=package, attributes=attributes, mixed=mixed)


def entries_of(run: Run) -> Entries:
    """What is known of the APIs of torch."""
    answers = Answers(run.knowledge, torch_names())

    def find(api: str) -> Entry | None:
        return run.knowledge.find(answers.of(api).api)

    return Entries(find)

"""Where a finding leads: to its source line, its module in the network, and its curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isograd.findings import Finding
from isograd.report.document import Document, FindingList, Group, Link, Section, Tree
from isograd.serve.catalogue import Catalogue
from isograd.serve.curves import label_of, names_of
from isograd.serve.model import Item, Kind
from isograd.serve.networks import MODULE
from isograd.serve.shell import quoted
from isograd.serve.sources import LINE, find_source

#: Findings of a page that get links, runs that are asked for curves, and curves of one link.
_MOST_FINDINGS, _MOST_RUNS, _MOST_CURVES = 1_000, 8, 4


def with_links(document: Document, item: Item, catalogue: Catalogue) -> Document:
    """The document with links behind its findings."""
    modules = {
        node.path for one in document.sections if isinstance(one, Tree) for node in one.nodes
    }
    linker = _Linker(item, catalogue, modules)
    return replace(document, sections=[linker.section(one) for one in document.sections])


class _Linker:
    """Links of one page's findings; what they need is looked for once."""

    def __init__(self, item: Item, catalogue: Catalogue, modules: set[str]) -> None:
        self._item = item
        self._catalogue = catalogue
        self._modules = modules
        self._names: dict[str, tuple[str, ...]] | None = None
        self._sources: dict[str, Item | None] = {}

    def section(self, section: Section) -> Section:
        if isinstance(section, Group):
            return replace(section, sections=[self.section(one) for one in section.sections])
        if not isinstance(section, FindingList):
            return section
        shown = section.findings[:_MOST_FINDINGS]
        links = [tuple(self._of(finding)) for finding in shown]
        return replace(section, links=[*links, *[()] * (len(section.findings) - len(shown))])

    def _of(self, finding: Finding) -> Iterator[Link]:
        place = finding.location
        where = [(place.file, place.line)] if place.file else []
        if finding.fix is not None and finding.fix.where:
            where.append(_file_and_line(finding.fix.where))
        for file, line in dict.fromkeys(where):
            source = self._source(file)
            if source is not None:
                anchor = "" if line is None else f"#{LINE}-{line}"
                label = source.name if line is None else f"{source.name}:{line}"
                yield Link(label, f"../{source.address}{anchor}")
        if place.module and place.module in self._modules:
            yield Link("module in the network", f"{MODULE}-{place.module}")
        if place.module:
            yield from self._curves(place.module)

    def _source(self, file: str) -> Item | None:
        if file not in self._sources:
            self._sources[file] = find_source(self._catalogue, self._item, file)
        return self._sources[file]

    def _curves(self, module: str) -> Iterator[Link]:
        if self._names is None:
            runs = [self._item] if self._item.kind is Kind.RUN else self._runs()
            self._names = {label_of(run): names_of(run) for run in runs}
        runs_with = [run for run, names in self._names.items() if _of_module(names, module)]
        if not runs_with:
            return
        chosen = [
            *(f"run={quoted(run)}" for run in runs_with),
            *(f"name={quoted(name)}" for name in _of_module(self._names[runs_with[0]], module)),
        ]
        yield Link("curves of the module", f"../curves?{'&'.join(chosen)}")

    def _runs(self) -> Sequence[Item]:
        runs = self._catalogue.of_kind(Kind.RUN)
        return sorted(runs, key=lambda run: -_shared(run, self._item))[:_MOST_RUNS]


def _of_module(names: Sequence[str], module: str) -> list[str]:
    """Statistics of a module or of its parameters: `output/MODULE/…`, `weight/MODULE.weight/…`."""
    found = []
    for name in names:
        parts = name.split("/")
        if len(parts) == 3 and (parts[1] == module or parts[1].rpartition(".")[0] == module):
            found.append(name)
    return found[:_MOST_CURVES]


def _file_and_line(where: str) -> tuple[str, int | None]:
    file, _, number = where.rpartition(":")
    return (file, int(number)) if file and number.isdecimal() else (where, None)


def _shared(one: Item, other: Item) -> int:
    pairs = zip(one.path.parts, other.path.parts, strict=False)
    return sum(1 for a, b in pairs if a == b)

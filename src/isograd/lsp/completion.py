"""MindSpore's names where they are typed, and as an offer behind a name of torch's.

A line that is being typed is seldom Python, so imports and the name at hand are read from the text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol import types

from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import PACKAGES
from isograd.knowledge.store import Knowledge
from isograd.lsp.analysis import Analysis
from isograd.lsp.positions import Lines
from isograd.lsp.rewrites import Rewriter

TRIGGERS = (".",)
_DOTTED = re.compile(r"(?<![\w.)\]'\"])([^\W\d]\w*(?:\.[^\W\d]\w*)*\.\w*)$")
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^#\r\n]+)", re.MULTILINE)
_FROM = re.compile(
    r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^#\r\n]+)", re.MULTILINE
)
_ALIAS = re.compile(r"([\w.]+)(?:\s+as\s+(\w+))?")
#: Offers behind a name of torch's; more than this is no choice.
_MOST_OFFERS = 50


@dataclass(frozen=True)
class _Name:
    """One name of MindSpore's with the APIs of torch that it means."""

    name: str
    entries: tuple[Entry, ...] = ()


class Names:
    """MindSpore's names as the knowledge has them, by the package that holds them."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.torch = {
            name: entry for entry in knowledge.entries for name in (entry.api, *entry.aliases)
        }
        targets: dict[str, list[Entry]] = defaultdict(list)
        for entry in knowledge.entries:
            for target in (entry.target, entry.mint):
                if re.fullmatch(r"mindspore(\.\w+)+", target):
                    targets[target].append(entry)
        self._members: dict[str, dict[str, _Name]] = defaultdict(dict)
        for target, entries in targets.items():
            self._add(target, tuple(entries))
        for package in PACKAGES.values():
            if package.startswith("mindspore."):
                self._add(package, ())

    def members(self, package: str) -> dict[str, _Name]:
        """What the knowledge has below a package or class."""
        return self._members.get(package, {})

    def _add(self, name: str, entries: tuple[Entry, ...]) -> None:
        """Put a name below its package, and that below its own, up to `mindspore`."""
        while "." in name:
            parent, _, last = name.rpartition(".")
            if entries or last not in self._members[parent]:
                self._members[parent][last] = _Name(name, entries)
            name, entries = parent, ()

    def is_package(self, name: str) -> bool:
        """Whether names stand below it."""
        return name in self._members


def complete(
    text: str,
    position: types.Position,
    names: Names,
    analysis: Analysis | None,
    encoding: str = "utf-16",
) -> list[types.CompletionItem]:
    """What may stand at a place of a text.

    analysis: of this text, or of its last state that was Python; needed to add an import.
    """
    lines = Lines(text, encoding)
    offset = lines.from_position(position)
    found = _DOTTED.search(text[lines.start(position.line) : offset])
    if found is None:
        return []
    typed = found[1]
    head, _, last = typed.rpartition(".")
    full = _resolve(head, _bindings(text))
    if full.partition(".")[0] == "mindspore":
        return [
            _member(word, name, names, lines.range(offset - len(last), offset))
            for word, name in sorted(names.members(full).items())
            if not word.startswith("__")
        ]
    if full.partition(".")[0] not in ("torch", "torchvision"):
        return []
    place = lines.range(offset - len(typed), offset)
    return list(_offers(lines, typed, f"{full}.{last}", place, names, analysis))


def _bindings(text: str) -> dict[str, str]:
    """What each imported name means."""
    bound = {}
    for listed in _IMPORT.findall(text):
        for part in listed.split(","):
            if alias := _ALIAS.match(part.strip()):
                root = alias[1].partition(".")[0]
                bound[alias[2] or root] = alias[1] if alias[2] else root
    for package, listed in _FROM.findall(text):
        for part in listed.strip("()").split(","):
            if alias := _ALIAS.match(part.strip()):
                bound[alias[2] or alias[1]] = f"{package}.{alias[1]}"
    return bound


def _resolve(name: str, bound: dict[str, str]) -> str:
    """The full name; MindSpore's usual short names count where nothing else bears them."""
    root, dot, rest = name.partition(".")
    full = bound.get(root)
    if full is None:
        full = PACKAGES[root] if root in ("nn", "ops", "mint", "ms") else root
    return f"{full}{dot}{rest}"


def _member(word: str, name: _Name, names: Names, place: types.Range) -> types.CompletionItem:
    kind = types.CompletionItemKind.Function
    if word[:1].isupper():
        kind = types.CompletionItemKind.Class
    elif not name.entries and names.is_package(name.name):
        kind = types.CompletionItemKind.Module
    apis = ", ".join(entry.api for entry in name.entries[:3])
    return types.CompletionItem(
        label=word,
        kind=kind,
        detail=f"for {apis}" if apis else name.name,
        documentation=_documentation(name.entries),
        text_edit=types.TextEdit(place, word),
    )


def _documentation(entries: tuple[Entry, ...]) -> types.MarkupContent | None:
    texts = [
        f"`{entry.api}`: {entry.status.value}. {entry.difference}".rstrip() for entry in entries[:5]
    ]
    return types.MarkupContent(types.MarkupKind.Markdown, "\n\n".join(texts)) if texts else None


def _offers(
    lines: Lines, typed: str, full: str, place: types.Range, names: Names, analysis: Analysis | None
) -> Iterator[types.CompletionItem]:
    """MindSpore's names for the APIs of torch that begin as typed, with the import they need."""
    matching = sorted(
        name
        for name, entry in names.torch.items()
        if name.startswith(full) and entry.target.startswith("mindspore.")
    )
    if analysis is None or not matching:
        return
    rewriter = Rewriter(analysis, names.knowledge)
    seen: set[str] = set()  # several names of torch's may have one of MindSpore's
    for name in matching[:_MOST_OFFERS]:
        entry = names.torch[name]
        spelled = _spelled(entry.target, rewriter, lines)
        if spelled is None or spelled[0] in seen:
            continue
        insert, edits = spelled
        seen.add(insert)
        look = "" if entry.applicability is Applicability.SAFE else f", {entry.applicability.value}"
        yield types.CompletionItem(
            label=insert,
            kind=types.CompletionItemKind.Reference,
            detail=f"MindSpore for {name}: {entry.status.value}{look}",
            documentation=_documentation((entry,)),
            filter_text=typed + name[len(full) :],
            sort_text=f"~{name}",
            text_edit=types.TextEdit(place, insert),
            additional_text_edits=edits or None,
        )


def _spelled(
    target: str, rewriter: Rewriter, lines: Lines
) -> tuple[str, list[types.TextEdit]] | None:
    """A MindSpore name as the file writes it, with the edits that import its package.

    None for what is no member of a package, such as a method.
    """
    package, _, last = target.rpartition(".")
    short = next((key for key, full in PACKAGES.items() if full == package), None)
    if short is None:
        return None
    spelling = rewriter.imports.spelling(short)
    if spelling is None:
        return None
    edits = []
    if spelling.statement:
        edit = rewriter.import_edit(spelling.statement)
        # The analysis may be of an older text: its head must still be the same.
        if not lines.text.startswith(rewriter.text[: edit.start]):
            return None
        edits.append(types.TextEdit(lines.range(edit.start, edit.end), edit.text))
    return f"{spelling.name}.{last}", edits

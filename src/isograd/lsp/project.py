"""Scans a text that is being edited, with what it imports from the files of its folder.

Everything here runs in one worker thread: an index and its summaries are never read by two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from isograd.knowledge.store import Knowledge, load_knowledge
from isograd.scan import sources
from isograd.scan.answers import Answers
from isograd.scan.model import FileScan, Problem
from isograd.scan.names import torch_names
from isograd.scan.project import ModuleIndex
from isograd.scan.sources import Source
from isograd.scan.walker import scan_source

#: A folder that is opened may be a home folder, and a project may import all of itself: how many
#: files are indexed, and how many are read for one text.
MOST_FILES = 20_000
MOST_IMPORTED = 400
#: Letters that end a line for `str.splitlines`, by which the scan counts, and not for Python; each
#: means one of as many bytes.
_NO_LINE_ENDS = str.maketrans(
    {"\x0b": " ", "\x0c": " ", "\x1c": " ", "\x1d": " ", "\x1e": " ", "\x85": "é", "\u2028": "字",
     "\u2029": "字"}
)  # fmt: skip

#: What a text that belongs to no folder imports.
_NO_PROJECT = ModuleIndex(Path("/"), []).seen_from(Path("/"))


class StaleError(Exception):
    """The text has changed meanwhile, so that nobody waits for the answer."""


class Projects:
    """The workspace's folders, each with an index of its modules."""

    def __init__(self) -> None:
        self._indexes: dict[Path, _Index] = {}
        self._answers: Answers | None = None
        self._knowledge: Knowledge | None = None

    @property
    def knowledge(self) -> Knowledge:
        """What is known of each API, loaded once."""
        if self._knowledge is None:
            self._knowledge = load_knowledge()
        return self._knowledge

    def forget(self) -> None:
        """Find the files of all folders anew: some have come or gone."""
        self._indexes.clear()

    def scan(
        self,
        source: Source,
        path: Path | None,
        folders: tuple[Path, ...],
        texts: Mapping[Path, str],
        is_stale: Callable[[], bool] = lambda: False,
    ) -> FileScan:
        """Scan a parsed text as if it were the file.

        path: where it is kept, or None for one that was never saved.  folders: those that are open.
        texts: other documents that are open, which count instead of their files.
        Raises StaleError as soon as `is_stale` says so.
        """
        if self._answers is None:
            self._answers = Answers(self.knowledge, torch_names())
        source.text = source.text.translate(_NO_LINE_ENDS)
        root = _root(path, folders)
        if path is None or root is None:
            found, _ = scan_source(source, _NO_PROJECT, self._answers)
            return found
        index = self._indexes.get(root)
        if index is None or (path not in index.modules.names and path.exists()):
            index = self._indexes[root] = _Index(root)
        index.read_imports(path, source.text, texts, self._answers, is_stale)
        found, _ = scan_source(
            source,
            index.modules.seen_from(path),
            self._answers,
            name=index.modules.names.get(path, ""),
            package=index.modules.packages.get(path, ""),
        )
        return found


class _Index:
    """The modules of one folder, and which state of each was read last."""

    def __init__(self, root: Path) -> None:
        problems: list[Problem] = []
        self.modules = ModuleIndex(
            root, list(islice(sources.find_files(root, problems), MOST_FILES))
        )
        #: In which state each module was read, and how often.
        self._states: dict[Path, object] = {}
        self._reads: dict[Path, int] = {}
        self._imports: dict[Path, tuple[object, list[Path]]] = {}

    def read_imports(
        self,
        path: Path,
        text: str,
        texts: Mapping[Path, str],
        answers: Answers,
        is_stale: Callable[[], bool],
    ) -> None:
        """Read what the text imports, what that imports, and so on, innermost first.

        A file is read again when it, or one that is read before it, has changed.
        """
        done: set[Path] = set()
        for other in self._order(path, text, texts):
            if is_stale():
                raise StaleError
            # Of a circle only what was read before counts, or its files would never be done.
            before = [item for item in self._imports_of(other, texts) if item in done]
            done.add(other)
            state = self._stamp(other, texts), tuple(self._reads.get(item, 0) for item in before)
            if self._states.get(other) == state:
                continue
            self._states[other] = state
            self._reads[other] = self._reads.get(other, 0) + 1
            source = self._source(other, texts)
            if source is None:
                continue
            names = self.modules
            try:
                _, summary = scan_source(
                    source,
                    names.seen_from(other),
                    answers,
                    name=names.names[other],
                    package=names.packages[other],
                )
            except Exception:  # noqa: S112  # a neighbour that cannot be read costs its names alone
                continue
            names.keep(summary)

    def _order(self, path: Path, text: str, texts: Mapping[Path, str]) -> Iterator[Path]:
        if path not in self.modules.packages:
            return
        seen = {path}
        stack = [iter(self.modules.imports(path, text))]
        trail = [path]
        while stack:
            following = next((item for item in stack[-1] if item not in seen), None)
            if following is None or len(seen) > MOST_IMPORTED:
                stack.pop()
                done = trail.pop()
                if done != path:
                    yield done
                continue
            seen.add(following)
            trail.append(following)
            stack.append(iter(self._imports_of(following, texts)))

    def _imports_of(self, path: Path, texts: Mapping[Path, str]) -> list[Path]:
        """The files that one imports, read again only where it has changed."""
        stamp = self._stamp(path, texts)
        kept = self._imports.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._imports[path] = stamp, self.modules.imports(path, _text(path, texts))
        return kept[1]

    def _stamp(self, path: Path, texts: Mapping[Path, str]) -> object:
        if path in texts:
            return hash(texts[path].translate(_NO_LINE_ENDS))
        try:
            status = path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size

    def _source(self, path: Path, texts: Mapping[Path, str]) -> Source | None:
        problems: list[Problem] = []
        if path in texts:
            return sources.parse_text(texts[path], path.name, problems)
        return sources.read_source(path, path.name, problems)


def _text(path: Path, texts: Mapping[Path, str]) -> str:
    if path in texts:
        return texts[path]
    try:
        if path.stat().st_size > sources.LARGEST_BYTES:
            return ""
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _root(path: Path | None, folders: tuple[Path, ...]) -> Path | None:
    """The innermost open folder around the file."""
    around = [folder for folder in folders if path is not None and path.is_relative_to(folder)]
    return max(around, key=lambda folder: len(folder.parts), default=None)

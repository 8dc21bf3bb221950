"""The open documents: their newest analysis, made in one worker thread after typing has paused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from isograd.lsp.analysis import Analysis
from isograd.lsp.project import Projects, StaleError
from isograd.scan import sources
from isograd.scan.model import Problem

#: How long typing has to pause before diagnostics are computed, in seconds.
PAUSE_S = 0.25


@dataclass
class Document:
    """One open document.

    analysis: of the text at hand, or None while it is not Python.  last: the newest that there was.
    """

    uri: str
    text: str
    version: int | None
    path: Path | None = None
    analysis: Analysis | None = None
    last: Analysis | None = None
    is_done: bool = False
    waiting: asyncio.Task[None] | None = None
    running: asyncio.Future[Analysis | None] | None = None
    stale: threading.Event | None = None


class Documents:
    """Analyses documents; `published` is called with each that has a new analysis.

    failed hears of a mistake of isograd's own, which costs one analysis and nothing else.
    """

    def __init__(
        self,
        published: Callable[[Document], None],
        failed: Callable[[str, Exception], None],
        pause_s: float = PAUSE_S,
    ) -> None:
        self.projects = Projects()
        self.folders: tuple[Path, ...] = ()
        self.encoding = "utf-16"
        self._open: dict[str, Document] = {}
        self._published = published
        self._failed = failed
        self._pause_s = pause_s
        # One thread, so that no two scans share an index, and typing never waits for the scan.
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="isograd-scan")

    def get(self, uri: str) -> Document | None:
        """The open document, or None."""
        return self._open.get(uri)

    def put(self, uri: str, text: str, version: int | None, path: Path | None) -> None:
        """A document was opened or its text has changed; what was under way for it is stale."""
        old = self._open.get(uri)
        document = Document(uri, text, version, path, last=old.last if old else None)
        if old is not None:
            _abandon(old)
        self._open[uri] = document
        self._schedule(document, 0.0 if old is None else self._pause_s)

    def close(self, uri: str) -> None:
        """A document was closed."""
        document = self._open.pop(uri, None)
        if document is not None:
            _abandon(document)

    def rescan(self, *, forget: bool = False, but: str = "") -> None:
        """What documents import may have changed: analyse all open ones anew, but one.

        forget: files have come or gone.
        """
        if forget:
            self.thread.submit(self.projects.forget)
        for document in [item for uri, item in self._open.items() if uri != but]:
            self.put(document.uri, document.text, document.version, document.path)

    def stop(self) -> None:
        """Abandon everything."""
        for document in self._open.values():
            _abandon(document)
        self.thread.shutdown(wait=False, cancel_futures=True)

    async def analysis(self, uri: str) -> Analysis | None:
        """The analysis of the text at hand, made now if need be; None while it is not Python."""
        document = self._open.get(uri)
        if document is None:
            return None
        if not document.is_done:
            await self._analyse(document)
        return document.analysis

    def _schedule(self, document: Document, pause_s: float) -> None:
        async def later() -> None:
            await asyncio.sleep(pause_s)
            await self._analyse(document)

        document.waiting = asyncio.get_running_loop().create_task(later())

    async def _analyse(self, document: Document) -> None:
        """Analyse once, whoever asks first; several may wait for the same."""
        if document.running is None:
            document.stale = threading.Event()
            texts = {other.path: other.text for other in self._open.values() if other.path}
            folders, is_stale = self.folders, document.stale.is_set
            document.running = asyncio.get_running_loop().run_in_executor(
                self.thread, lambda: self._scan(document, folders, texts, is_stale)
            )
        try:
            # One who asked may go away; the others still wait for it.
            analysis = await asyncio.shield(document.running)
        except StaleError:
            return
        except asyncio.CancelledError:
            if document.running.cancelled():  # the text is stale, not the one who asked
                return
            raise
        except Exception as error:
            if not document.is_done:
                document.is_done = True
                self._failed(document.uri, error)
            return
        if document.is_done or self._open.get(document.uri) is not document:
            return
        document.is_done = True
        document.analysis = analysis
        if analysis is not None:
            document.last = analysis
            try:
                self._published(document)
            except Exception as error:
                self._failed(document.uri, error)

    def _scan(
        self,
        document: Document,
        folders: tuple[Path, ...],
        texts: dict[Path, str],
        is_stale: Callable[[], bool],
    ) -> Analysis | None:
        """In the thread: the text as a tree, scanned; None where it is not Python or too large."""
        if is_stale():
            raise StaleError
        if len(document.text) > sources.LARGEST_BYTES:
            return None
        problems: list[Problem] = []
        name = document.path.name if document.path else document.uri
        source = sources.parse_text(document.text, name, problems)
        if source is None:
            return None
        tree = source.tree
        try:
            scan = self.projects.scan(source, document.path, folders, texts, is_stale)
        except RecursionError:  # expressions that are nested too deeply to be read
            return None
        return Analysis(document.text, tree, scan, self.encoding)


def _abandon(document: Document) -> None:
    """Stop what is under way for a text that nobody sees any more."""
    if document.stale is not None:
        document.stale.set()
    if document.waiting is not None:
        document.waiting.cancel()
    if document.running is not None:
        document.running.cancel()

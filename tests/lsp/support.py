"""An editor: pygls' own client, which speaks to `isograd lsp` over standard streams."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

import isograd

WAIT_S = 15.0
SOURCE = Path(isograd.__file__).parents[1]
Result = TypeVar("Result")


class Editor:
    """One client with its server; every method waits for its answer."""

    def __init__(self, folders: Sequence[Path] = (), *, encodings: list[str] | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.client = LanguageClient("test-editor", "1")
        self.published: dict[str, list[types.PublishDiagnosticsParams]] = {}
        self.logged: list[str] = []
        self.registered: list[str] = []
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._news = asyncio.Event()
        self._listen()
        self.server = self.run(self._start(folders, encodings))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_S)

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.published.setdefault(params.uri, []).append(params)
            self._news.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def shown(params: types.ShowMessageParams) -> None:
            self.logged.append(params.message)

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def registered(params: types.RegistrationParams) -> None:
            self.registered += [item.method for item in params.registrations]

    async def _start(
        self, folders: Sequence[Path], encodings: list[str] | None
    ) -> types.InitializeResult:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        await self.client.start_io(
            sys.executable, "-m", "isograd", "lsp", "--stdio", env=environment
        )
        edits = types.WorkspaceEditClientCapabilities(document_changes=True)
        result = await self.client.initialize_async(
            types.InitializeParams(
                types.ClientCapabilities(
                    workspace=types.WorkspaceClientCapabilities(
                        workspace_edit=edits,
                        workspace_folders=True,
                        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                            dynamic_registration=True
                        ),
                    ),
                    general=types.GeneralClientCapabilities(position_encodings=encodings),
                ),
                workspace_folders=[
                    types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders
                ],
            )
        )
        self.client.initialized(types.InitializedParams())
        return result

    async def _call(self, function: Any, *arguments: Any) -> None:
        function(*arguments)

    def tell(self, function: Any, *arguments: Any) -> None:
        """Send a notification."""
        self.run(self._call(function, *arguments))

    def open(self, uri: str, text: str) -> None:
        self.texts[uri], self.versions[uri] = text, 1
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.tell(self.client.text_document_did_open, types.DidOpenTextDocumentParams(item))

    def type(self, uri: str, text: str) -> None:
        """Replace the whole text, as an editor does after a key stroke."""
        self.texts[uri] = text
        self.versions[uri] += 1
        self.tell(
            self.client.text_document_did_change,
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            ),
        )

    def close(self, uri: str) -> None:
        identifier = types.TextDocumentIdentifier(uri)
        self.tell(self.client.text_document_did_close, types.DidCloseTextDocumentParams(identifier))

    def diagnostics(self, uri: str, version: int | None = None) -> list[types.Diagnostic]:
        """Those of a version (the newest), as soon as they have come."""
        wanted = version or self.versions[uri]
        return self.run(self._diagnostics(uri, wanted))

    def next_diagnostics(self, uri: str) -> list[types.Diagnostic]:
        """The next that come, of whichever version."""
        return self.run(self._next(uri, len(self.published.get(uri, []))))

    async def _next(self, uri: str, so_far: int) -> list[types.Diagnostic]:
        while len(self.published.get(uri, [])) <= so_far:
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), WAIT_S)
        return list(self.published[uri][-1].diagnostics)

    async def _diagnostics(self, uri: str, version: int) -> list[types.Diagnostic]:
        while True:
            for params in self.published.get(uri, []):
                if params.version == version:
                    return list(params.diagnostics)
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), WAIT_S)

    def position(self, uri: str, marker: str, after: bool = False) -> types.Position:
        """Where the marker first stands, in UTF-16 units."""
        text = self.texts[uri]
        at = text.index(marker) + (len(marker) if after else 0)
        line = text.count("\n", 0, at)
        start = text.rfind("\n", 0, at) + 1
        return types.Position(line, len(text[start:at].encode("utf-16-le")) // 2)

    def hover(self, uri: str, marker: str) -> str:
        params = types.HoverParams(types.TextDocumentIdentifier(uri), self.position(uri, marker))
        found = self.run(self.client.text_document_hover_async(params))
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    def actions(
        self, uri: str, marker: str, only: Sequence[str] = ("quickfix", "refactor")
    ) -> list[types.CodeAction]:
        place = types.Range(self.position(uri, marker), self.position(uri, marker))
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), place, types.CodeActionContext([], only=list(only))
        )
        found = self.run(self.client.text_document_code_action_async(params)) or []
        return [action for action in found if isinstance(action, types.CodeAction)]

    def completions(self, uri: str, marker: str) -> dict[str, types.CompletionItem]:
        """By label, behind the marker."""
        params = types.CompletionParams(
            types.TextDocumentIdentifier(uri), self.position(uri, marker, after=True)
        )
        found = self.run(self.client.text_document_completion_async(params))
        items = found.items if isinstance(found, types.CompletionList) else found or []
        return {item.label: item for item in items}

    def after(self, uri: str, edits: Sequence[types.TextEdit]) -> str:
        """The text after edits."""
        text = self.texts[uri]
        places = [(_offset(text, edit.range.start), _offset(text, edit.range.end), edit.new_text)
                  for edit in edits]  # fmt: skip
        for start, end, new in sorted(places, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def applied(self, uri: str, action: types.CodeAction) -> str:
        """The text after a code action."""
        assert action.edit is not None
        assert action.edit.document_changes is not None
        (change,) = action.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == self.versions[uri]
        return self.after(uri, [edit for edit in change.edits if isinstance(edit, types.TextEdit)])

    def stop(self) -> int:
        """Shut the server down; returns its exit status."""
        process = self.client._server
        assert process is not None
        self.run(self.client.shutdown_async(None))
        self.tell(self.client.exit, None)
        status = self.run(asyncio.wait_for(process.wait(), WAIT_S))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(WAIT_S)
        return status


def _offset(text: str, position: types.Position) -> int:
    start = 0
    for _ in range(position.line):
        start = text.index("\n", start) + 1
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end]
    return start + len(line.encode("utf-16-le")[: 2 * position.character].decode("utf-16-le"))

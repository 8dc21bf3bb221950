"""The language server: hears the editor, asks the parts that answer, over standard streams.

A mistake of isograd's own is written into the editor's log and costs one answer, never the server.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from isograd.errors import UsageError
from isograd.knowledge.store import VARIABLE, load_knowledge
from isograd.lsp.actions import KINDS, code_actions
from isograd.lsp.completion import TRIGGERS, Names, complete
from isograd.lsp.diagnostics import diagnostics
from isograd.lsp.documents import PAUSE_S, Document, Documents
from isograd.lsp.hover import hover
from isograd.version import __version__

_CREATED_OR_GONE = (types.FileChangeType.Created, types.FileChangeType.Deleted)


class IsogradServer(LanguageServer):
    """One editor's server."""

    def __init__(self, pause_s: float = PAUSE_S) -> None:
        # Whole texts: pygls applies partial ones by lines that end where Python's str ends them
        # (a form feed, U+2028), which are other lines than the protocol's.
        super().__init__(
            "isograd", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        self.documents = Documents(self.publish, self.log_failure, pause_s)
        self.was_shut_down = False

    @cached_property
    def names(self) -> Names:
        """MindSpore's names for completion."""
        return Names(self.documents.projects.knowledge)

    @cached_property
    def pages(self) -> dict[str, str]:
        """The pages on which entries of the knowledge stand."""
        entries = self.documents.projects.knowledge.entries
        return {entry.api: entry.source for entry in entries if entry.source.startswith("https://")}

    def publish(self, document: Document) -> None:
        """Send a document's diagnostics."""
        assert document.analysis is not None
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=document.uri,
                version=document.version,
                diagnostics=diagnostics(document.analysis, document.uri, self.pages),
            )
        )

    def log_failure(self, uri: str, error: Exception) -> None:
        """Report a mistake of isograd's own."""
        message = f"isograd failed on {uri} with {type(error).__name__}: {error}. Please report it."
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))

    def take_folders(self) -> None:
        """Note which folders are open."""
        uris = [folder.uri for folder in self.workspace.folders.values()]
        if not uris and self.workspace.root_uri:
            uris = [self.workspace.root_uri]
        paths = [_path(uri) for uri in uris]
        self.documents.folders = tuple(path for path in paths if path is not None)

    def watch_files(self) -> None:
        """Ask to hear of Python files that change, where the editor can be asked."""
        workspace = self.client_capabilities.workspace
        watched = workspace.did_change_watched_files if workspace is not None else None
        if watched is None or not watched.dynamic_registration:
            return
        options = types.DidChangeWatchedFilesRegistrationOptions(
            [types.FileSystemWatcher("**/*.py")]
        )
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("isograd-files", method, options)
        self.client_register_capability(types.RegistrationParams([registration]))

    def takes_versioned_edits(self) -> bool:
        """Whether edits may be bound to the version of a document."""
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace is not None else None
        return bool(edit is not None and edit.document_changes)


def make_server(pause_s: float = PAUSE_S) -> IsogradServer:
    """A server with all its features, not yet started.

    pause_s: how long typing has to pause before diagnostics are computed.
    """
    server = IsogradServer(pause_s)
    _keep_documents(server)
    _keep_workspace(server)
    _answer(server)
    return server


def run() -> int:
    """Serve on standard input and output until the editor ends it; returns the exit status.

    As the protocol asks: 0 after a shutdown, else 1.  Raises UsageError where the knowledge that
    the environment names cannot be read.
    """
    try:
        load_knowledge()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the table of verdicts that {VARIABLE} names cannot be read: {error}",
            "Correct the variable or leave it out.",
        ) from error
    logging.getLogger("pygls").setLevel(logging.ERROR)
    server = make_server()
    try:
        server.start_io()
    finally:
        server.documents.stop()
    return 0 if server.was_shut_down else 1


def _keep_documents(server: IsogradServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        path = _path(document.uri)
        server.documents.put(document.uri, document.text, document.version, path)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        text = server.workspace.get_text_document(uri).source
        server.documents.put(uri, text, params.text_document.version, _path(uri))

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        server.documents.rescan(but=params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.documents.close(uri)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _keep_workspace(server: IsogradServer) -> None:
    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        encoding = server.server_capabilities.position_encoding
        server.documents.encoding = str(getattr(encoding, "value", encoding) or "utf-16")
        server.take_folders()
        server.watch_files()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        server.take_folders()
        server.documents.rescan(forget=True)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        forget = any(change.type in _CREATED_OR_GONE for change in params.changes)
        server.documents.rescan(forget=forget)

    @server.feature(types.SHUTDOWN)
    def shut_down(params: None) -> None:
        server.was_shut_down = True
        server.documents.stop()


def _answer(server: IsogradServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def on_hover(params: types.HoverParams) -> types.Hover | None:
        analysis = await server.documents.analysis(params.text_document.uri)
        if analysis is None:
            return None
        offset = analysis.lines.from_position(params.position)
        return hover(analysis, server.documents.projects.knowledge, offset)

    options = types.CodeActionOptions(code_action_kinds=list(KINDS))

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def on_code_action(params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        uri = params.text_document.uri
        analysis = await server.documents.analysis(uri)
        document = server.documents.get(uri)
        if analysis is None or document is None:
            return []
        return code_actions(
            analysis,
            server.documents.projects.knowledge,
            types.OptionalVersionedTextDocumentIdentifier(uri, document.version),
            params.range,
            params.context,
            is_versioned=server.takes_versioned_edits(),
        )

    completion = types.CompletionOptions(trigger_characters=list(TRIGGERS))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, completion)
    async def on_completion(params: types.CompletionParams) -> types.CompletionList:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is not None and document.last is None:
            await server.documents.analysis(uri)
            document = server.documents.get(uri)
        if document is None:
            return types.CompletionList(is_incomplete=False, items=[])
        items = complete(
            document.text,
            params.position,
            server.names,
            document.last,
            server.documents.encoding,
        )
        return types.CompletionList(is_incomplete=True, items=items)


def _path(uri: str) -> Path | None:
    """The file or folder of an address; None for what is neither (untitled, a notebook's cell)."""
    if not uri.startswith("file:"):
        return None
    name = to_fs_path(uri)
    if not name:
        return None
    return Path(name) if name.endswith(".py") or Path(name).is_dir() else None

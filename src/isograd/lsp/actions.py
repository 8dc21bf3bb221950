"""Rewrites as an editor's code actions."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from isograd.knowledge.entry import Applicability
from isograd.knowledge.store import Knowledge
from isograd.lsp.analysis import Analysis
from isograd.lsp.rewrites import Edit, Replacement, Rewriter

#: Every safe rewrite of a file at once.
ALL_SAFE = "source.fixAll.isograd"
KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite, ALL_SAFE)
_LONGEST_TITLE = 60


def code_actions(
    analysis: Analysis,
    knowledge: Knowledge,
    document: types.OptionalVersionedTextDocumentIdentifier,
    wanted: types.Range,
    context: types.CodeActionContext,
    *,
    is_versioned: bool = True,
) -> list[types.CodeAction]:
    """The rewrites of the uses within a range; safe ones first, and none that a person must write.

    is_versioned: whether the editor takes edits that are bound to a document's version.
    """
    rewriter = Rewriter(analysis, knowledge)
    actions: list[types.CodeAction] = []
    start = analysis.lines.from_position(wanted.start)
    end = analysis.lines.from_position(wanted.end)
    for found in analysis.uses_between(start, end):
        made = rewriter.replacement(found)
        edits = rewriter.edits([made]) if made is not None else None
        if made is None or edits is None:
            continue
        actions.append(
            _action(made, _workspace_edit(analysis, document, edits, is_versioned), context)
        )
    actions.sort(key=lambda action: not action.is_preferred)
    if _is_wanted(ALL_SAFE, context, only_if_asked=not actions):
        edits = rewriter.all_safe()
        if edits is not None:
            actions.append(
                types.CodeAction(
                    title="isograd: rewrite everything in this file that is safe",
                    kind=ALL_SAFE,
                    edit=_workspace_edit(analysis, document, edits, is_versioned),
                )
            )
    return [action for action in actions if _is_wanted(_text(action.kind), context)]


def _action(
    made: Replacement, edit: types.WorkspaceEdit, context: types.CodeActionContext
) -> types.CodeAction:
    is_safe = made.applicability is Applicability.SAFE
    api = made.found.use.answer.api
    code = " ".join(made.edit.text.split())
    if len(code) > _LONGEST_TITLE:
        code = f"{code[: _LONGEST_TITLE - 1]}…"
    kind = types.CodeActionKind.QuickFix if is_safe else types.CodeActionKind.RefactorRewrite
    title = f"Rewrite {api} as {code}" + ("" if is_safe else " (needs a look)")
    related = [item for item in context.diagnostics if item.code == api]
    return types.CodeAction(
        title=title,
        kind=kind,
        is_preferred=is_safe or None,
        diagnostics=related or None,
        edit=edit,
    )


def _is_wanted(kind: str, context: types.CodeActionContext, *, only_if_asked: bool = False) -> bool:
    """Whether the editor asks for this kind, or a kind above it, or for all."""
    if not context.only:
        return not only_if_asked
    asked = [_text(item) for item in context.only]
    return any(kind == item or kind.startswith(f"{item}.") or not item for item in asked)


def _text(kind: types.CodeActionKind | str | None) -> str:
    """A kind as it travels; those of the protocol are an enum, others plain text."""
    return kind.value if isinstance(kind, types.CodeActionKind) else kind or ""


def _workspace_edit(
    analysis: Analysis,
    document: types.OptionalVersionedTextDocumentIdentifier,
    edits: Iterable[Edit],
    is_versioned: bool,
) -> types.WorkspaceEdit:
    """Bound to the document's version, so that an editor refuses it after further typing."""
    changes = [
        types.TextEdit(analysis.lines.range(edit.start, edit.end), edit.text) for edit in edits
    ]
    if not is_versioned:
        return types.WorkspaceEdit(changes={document.uri: changes})
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, changes)])

"""One file while it is converted: what passes write."""

from __future__ import annotations

import ast
from bisect import bisect_left
from dataclasses import dataclass

from isograd.convert.analysis.computations import only_computes
from isograd.convert.analysis.dictionaries import passed
from isograd.convert.analysis.integers import is_integer
from isograd.convert.file_facts import FileFacts, parsed
from isograd.convert.model import Finding, Level
from isograd.convert.runtime_uses import reasons_of
from isograd.convert.text import narrow
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.marks import mark, mark_first, packages_in
from isograd.knowledge.rewrite import Call, NotRewritten, Rewritten, reference, rewrite
from isograd.static_graph.scope import below


@dataclass
class FileEdit(FileFacts):
    """What a pass sees of a file, and writes.  Spans are in the form of `text.narrow`."""

    # ---- what is written

    def replace(self, node: ast.AST, code: str) -> None:
        """Write a node anew; edits inside it are absorbed.  Brackets are the caller's concern."""
        start, end = self.text.span(node)
        if isinstance(node, ast.Attribute) and node not in self.named:
            self.keep_sources(node.value)
        if node in self.tree.formatted:
            code = self._quoted(code, start)
        if self.text.source(start, end) != code:
            self.text.replace(start, end, code)

    def keep_sources(self, node: ast.expr) -> None:
        """Keep how an expression and what it begins with are written, before it is written anew."""
        part = node
        while part not in self.sources_before:
            self.sources_before[part] = self.source(part)
            if isinstance(part, ast.Subscript):
                for inner in ast.walk(part.slice):
                    if isinstance(inner, ast.expr):
                        self.sources_before[inner] = self.source(inner)
            if isinstance(part, ast.Call):
                part = part.func
            elif isinstance(part, (ast.Attribute, ast.Subscript)):
                part = part.value

    def _quoted(self, code: str, at: int) -> str:
        """Code inside an f-string, without the quote that would end it."""
        before = bisect_left(self.format_strings, (at, "")) - 1
        if before < 0:
            return code
        quote = self.format_strings[before][1]
        other = "'" if quote.startswith('"') else '"'
        if len(quote) > 1:
            return code
        return code.replace(quote, other) if other not in code else code

    def leave_out(self, node: ast.stmt) -> None:
        """Remove a statement with its line, or put `pass` where its block would be empty."""
        text = self.text
        parent = self.tree.parents[node]
        block = next(
            value
            for _, value in ast.iter_fields(parent)
            if isinstance(value, list) and any(item is node for item in value)
        )
        self.forget(node)
        beside = _on_line_of(node, block)
        kept = [item for item in beside if item is not node and item not in self.removed]
        if kept:
            self._leave_out_beside(node, beside, kept)
            return
        first, last = beside[0], beside[-1]
        (start, _), (_, end) = text.span(first), text.span(last)
        assert last.end_lineno is not None
        line, stop = text.line_start(first.lineno), text.line_end(last.end_lineno)
        is_alone = not text.original[line:start].strip() and not text.original[end:stop].strip(" ;")
        is_last = all(item is node or item in self.removed for item in block)
        if is_alone and (not is_last or isinstance(parent, ast.Module)):
            text.replace(line, text.line_start(last.end_lineno + 1), "")
            self.removed.add(node)
        elif text.original[end:stop].lstrip(" ;").startswith("#") and isinstance(
            parent, ast.Module
        ):
            text.replace(start, text.original.index("#", end), "")  # its comment stays
            self.removed.add(node)
        else:
            text.replace(start, end, "pass")

    def _leave_out_beside(
        self, node: ast.stmt, beside: list[ast.stmt], kept: list[ast.stmt]
    ) -> None:
        """Remove a statement that others stand beside: `import torch; x = 3`."""
        text = self.text
        after = beside[beside.index(node) + 1 :]
        if any(item in kept for item in after):
            text.replace(text.span(node)[0], text.span(after[0])[0], "")
        else:
            before = [item for item in beside[: beside.index(node)] if item in kept]
            text.replace(text.span(before[-1])[1], text.span(beside[-1])[1], "")
        self.removed.add(node)

    def name(self, dotted: str) -> str:
        """A name such as `nn.Cell` or `composites.Conv2d` as this file writes it."""
        return self.spelling.name(dotted)

    def spelled(self, template: str) -> str:
        """Code that is written with the packages of templates, as this file writes it."""
        return self.spelling.spelled(mark(template))

    def unconverted(self, api: str, node: ast.AST | None = None) -> str:
        """An expression that imports, and says what is missing as soon as it is used."""
        raises = ", raises=True" if node is not None and self.is_guarded(node) else ""
        return f'{self.name("composites.unconverted")}("{api}"{raises})'

    def finding(
        self,
        node: ast.AST,
        code: str,
        message: str,
        advice: str = "",
        *,
        level: Level = Level.FINISH,
        api: str = "",
    ) -> None:
        """Report a place; what a person has to finish also gets a comment in the code."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        start = self.text.line_start(line)
        before = self.text.original[start : start + column]
        shown = before if before.isascii() else before.encode("latin-1").decode(errors="replace")
        found = Finding(self.file, line, len(shown) + 1, code, message, advice, level, api)
        if found in self.findings:
            return
        self.findings.append(found)
        if level is Level.FINISH:
            said = self.comments.setdefault(self.tree.statement(node), [])
            if message not in said:
                said.append(message)

    def keep_comment(self, node: ast.AST, comment: str) -> None:
        """Move a comment that has lost its place above the statement."""
        self.kept.setdefault(self.tree.statement(node), []).append(comment)

    def forget(self, node: ast.AST) -> None:
        """No pass needs to look into this node: it is written."""
        self.done.update(below(node))

    # ---- what the knowledge says

    def rewritten(self, entry: Entry, call: Call) -> Rewritten | NotRewritten:
        """A call in MindSpore's words, spelled as this file does."""
        if entry.applicability is Applicability.HAND:
            reason = entry.difference or f"{entry.api} has no counterpart in MindSpore"
            return NotRewritten(reason)
        result = rewrite(self.answers.marked(entry), call)
        if isinstance(result, NotRewritten):
            return result
        code = result.code if entry.rewrite else mark_first(result.code)
        self._note_reasons(entry, code)
        is_runtime = "composites" in packages_in(code)
        return Rewritten(self.spelling.spelled(code), result.dropped, is_runtime)

    def value(self, entry: Entry) -> str:
        """The name that means a class or function that is passed around; empty if none."""
        if entry.applicability is Applicability.HAND and not entry.value:
            return ""
        code = reference(entry)
        self._note_reasons(entry, mark(code))
        return self.spelled(code)

    def _note_reasons(self, entry: Entry, code: str) -> None:
        for name, reason in reasons_of(entry, code, self.settings.layers).items():
            self.reasons.setdefault(name, reason)

    def layer(self, entry: Entry, *, is_value: bool = False) -> str:
        """What makes MindSpore's own layer by torch's arguments; empty where nothing does.

        is_value: whether it is passed on, to what may ask whether it is a class.
        """
        if not entry.factory or self.settings.is_shaped(entry.api):
            return ""
        package, _, name = entry.factory.partition(".")
        if package != "cells":
            return self.name(entry.factory)
        if entry.api in self.settings.layers.compared:  # one for all files
            is_asked = self.settings.layers.asks_for_classes
            return "" if is_asked else self.name(f"composites.{name}")
        function = self.factories.setdefault(name, self.spelling.unused(name))
        if not is_value or not self.settings.layers.asks_for_classes:
            return function
        own = entry.api.rpartition(".")[2]
        return self.factory_classes.setdefault(name, (own, self.spelling.unused(own)))[1]

    def call(self, node: ast.Call, receiver: str = "") -> Call | NotRewritten:
        """A call's arguments as they are written by now."""
        keywords: dict[str, str] = {}
        for keyword in node.keywords:
            if keyword.arg is not None:
                keywords[keyword.arg] = self.argument(keyword.value)
                continue
            known = passed(keyword.value, self.tree)
            if known is None or any(value in self.named for value in known.values()):
                text = narrow(ast.unparse(keyword.value))
                return NotRewritten(f"the arguments in **{text} are not known")
            keywords |= {name: self.argument(value) for name, value in known.items()}
        arguments = tuple(self.argument(part) for part in node.args)
        given = [*zip(node.args, arguments, strict=True)]
        given += [(part.value, keywords[part.arg]) for part in node.keywords if part.arg]
        return Call(
            arguments,
            keywords,
            receiver,
            frozenset(code for part, code in given if is_integer(part, self.tree)),
            frozenset(self.source(part) for part, _ in given if self.is_parameter(part)),
            frozenset(code for part, code in given if only_computes(part, self.tree)),
        )

    def argument(self, node: ast.expr) -> str:
        """An expression that stands as an argument; a generator keeps its brackets."""
        code = self.source(node)
        if code.startswith("(") and not isinstance(node, (ast.Tuple, ast.GeneratorExp)):
            inner = code[1:-1]
            made = parsed(code)
            if made is not None and not isinstance(made, ast.Tuple) and _is_same(inner, made):
                return inner
        if isinstance(node, ast.GeneratorExp) and not code.startswith("("):
            return f"({code})"
        return code


def _on_line_of(node: ast.stmt, block: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block that semicolons join with one of them, and itself."""
    place = next(i for i, item in enumerate(block) if item is node)
    first = last = place
    while first and block[first - 1].end_lineno == block[first].lineno:
        first -= 1
    while last + 1 < len(block) and block[last + 1].lineno == block[last].end_lineno:
        last += 1
    return block[first : last + 1]


def _is_same(code: str, made: ast.expr) -> bool:
    """Whether brackets around the code are all that was left out."""
    if "\n" in code:
        return False
    inner = parsed(code)
    return inner is not None and ast.dump(inner) == ast.dump(made)

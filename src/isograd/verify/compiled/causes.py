"""Why a module is another under the static graph: the table of constructs as hypotheses.

A construct that stands in the module's own code is written otherwise in memory, where that is
mechanical, and compiled again: where the module then computes what it computes eagerly, the cause
is proved.  Elsewhere it is named only where it is the only one at the place that was found.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isograd.frameworks.capabilities import CompilesModules
from isograd.model import Cause, Fix
from isograd.static_graph.find import find_reached, functions_called
from isograd.static_graph.rewrite import is_mechanical, rewritten
from isograd.static_graph.rule import SILENT, Occurrence
from isograd.static_graph.scope import FileScope
from isograd.static_graph.table import consequence, rules
from isograd.verify.compiled.locate import Located
from isograd.verify.compiled.port import CompiledPort

#: Constructs of one module that are tried; a compilation takes about a second each.
_MOST_TRIALS = 12
#: A function written otherwise: its name, the line of its definition, and the text.
_Edit = tuple[str, int, str]


@dataclass(frozen=True)
class Explanation:
    """What explains a located module: the cause, and the line with its rewrite."""

    cause: Cause
    fix: Fix


def explain(
    port: CompiledPort, located: Located, way: str, backward: bool
) -> tuple[Explanation, ...]:
    """The constructs that are to blame; empty where isograd does not know."""
    if located.call is None:
        return _of_loss(located)
    code = port.plain(CompilesModules.code_of, located.module)
    if "library" in code:
        return _of_library(code["library"], located)
    if "file" not in code:
        return ()
    source = _Source(code["file"], code["class"])
    trial = _Trial(port, located, way, backward)
    return trial.one(source) or trial.several(source) or _only(source, located)


def _of_library(kind: str, located: Located) -> tuple[Explanation, ...]:
    """A layer of MindSpore's own that is known to be another."""
    for rule in rules().values():
        if kind in rule.cells:
            where = _where(located.place[:2]) if located.place else None
            cause = Cause(rule.code, text=rule.message)
            return (Explanation(cause, Fix(rule.advice, where)),)
    return ()


def _of_loss(located: Located) -> tuple[Explanation, ...]:
    file, name = located.detail.get("file"), located.detail.get("function")
    if not isinstance(file, str) or not isinstance(name, str):
        return ()
    return _only(_Source(file, "", name), located)


class _Source:
    """The file of a module's class, and the constructs in what its construct reaches."""

    def __init__(self, file: str, cls: str, function: str = "") -> None:
        self.file, self._cls, self._function_name = file, cls, function
        self._text = Path(file).read_text(encoding="utf-8")
        self.scope = FileScope(ast.parse(self._text))
        self.found = find_reached(self.scope.tree, cls, function)

    def there(self, located: Located) -> list[Occurrence]:
        """Constructs of the statement that was found to be to blame."""
        place = located.place
        if place is None or place[0] != self.file:
            return []
        called = functions_called(self.scope.tree, self._cls, place[1], place[2])

        def is_there(occurrence: Occurrence) -> bool:
            lies = occurrence.line <= place[2] and occurrence.end_line >= place[1]
            return lies or (occurrence.cls, occurrence.function) in called

        return [o for o in self.found if is_there(o)]

    def ranked(self, located: Located) -> list[Occurrence]:
        """Constructs that may be to blame: those that are known to end so, there, come first."""
        there = self.there(located)
        return sorted(
            self.found, key=lambda o: (o not in there, not _fits(o.code, located.verdict))
        )

    def edit(self, occurrence: Occurrence) -> list[_Edit] | None:
        """One construct written otherwise; None where that is not mechanical."""
        function = self._function(self.scope, occurrence)
        if function is None:
            return None
        o = occurrence
        new = rewritten(self.scope, o.cls, function, o.code, o.line, o.column)
        return None if new is None else [(function.name, function.lineno, ast.unparse(new))]

    def edits(self, codes: Sequence[str]) -> list[_Edit]:
        """All constructs of these rules written otherwise, as far as that is mechanical."""
        tree, changed = ast.parse(self._text), set()
        for _ in range(_MOST_TRIALS):
            tree = ast.parse(ast.unparse(tree))
            scope = FileScope(tree)
            for o in find_reached(tree, self._cls, self._function_name):
                function = self._function(scope, o) if o.code in codes else None
                if function is None:
                    continue
                new = rewritten(scope, o.cls, function, o.code, o.line, o.column)
                if new is not None:
                    function.body = new.body
                    changed.add((o.cls, o.function))
                    break
            else:
                break
        scope = FileScope(tree)
        found: list[_Edit] = []
        for cls, name in sorted(changed):
            before, after = (_named(s, cls, name) for s in (self.scope, scope))
            if before is not None and after is not None:
                found.append((name, before.lineno, ast.unparse(after)))
        return found

    def _function(self, scope: FileScope, occurrence: Occurrence) -> ast.FunctionDef | None:
        return _named(scope, occurrence.cls, occurrence.function)

    def explanation(self, occurrence: Occurrence, proved: bool) -> Explanation:
        """The cause and the fix of one construct."""
        rule = rules()[occurrence.code]
        where = _where((self.file, occurrence.line))
        return Explanation(
            Cause(rule.code, text=rule.message, proved=proved), Fix(rule.advice, where)
        )


def _named(scope: FileScope, cls: str, name: str) -> ast.FunctionDef | None:
    return scope.method(cls, name) if cls else scope.functions.get(name)


class _Trial:
    """Rewrites tried on one located module."""

    def __init__(self, port: CompiledPort, located: Located, way: str, backward: bool) -> None:
        self._port, self._located = port, located
        self._way, self._backward = way, backward

    def _mends(self, edits: list[_Edit]) -> bool:
        call = self._located.call
        if call is None:  # the loss has no call that runs alone
            return False
        judged = self._port.ask(
            CompilesModules.alone_rewritten, call, self._way, self._backward, edits
        )
        return bool(judged["verdict"] == "same")

    def one(self, source: _Source) -> tuple[Explanation, ...]:
        """One construct that explains all."""
        for occurrence in source.ranked(self._located)[:_MOST_TRIALS]:
            edit = source.edit(occurrence)
            if edit is not None and self._mends(edit):
                return (source.explanation(occurrence, proved=True),)
        return ()

    def several(self, source: _Source) -> tuple[Explanation, ...]:
        """Constructs that explain it together, none of them needlessly."""
        codes = sorted({o.code for o in source.found if is_mechanical(o.code)})
        if len(source.found) < 2 or not codes:
            return ()
        edits = source.edits(codes)
        if not edits or not self._mends(edits):
            return ()
        for code in list(codes):
            fewer = [c for c in codes if c != code]
            without = source.edits(fewer) if fewer else []
            if without and self._mends(without):
                codes = fewer
        firsts = {o.code: o for o in reversed(source.found) if o.code in codes}
        return tuple(source.explanation(o, proved=True) for o in firsts.values())


def _only(source: _Source, located: Located) -> tuple[Explanation, ...]:
    """The one construct that is known to end so at the place that was found, else in the module.

    A value that leaves the graph is lost where it is used, not where it leaves.
    """
    there = [o for o in source.there(located) if _fits(o.code, located.verdict)]
    if not there:
        there = [o for o in source.found if _fits(o.code, located.verdict)]
    if len({o.code for o in there}) == 1:
        return (source.explanation(there[0], proved=False),)
    return ()


def _fits(code: str, verdict: str) -> bool:
    """Whether a construct is known to end so."""
    known = consequence(code)
    return known == verdict or (known in SILENT and verdict in SILENT)


def _where(place: Sequence[object]) -> str:
    return f"{Path(str(place[0])).name}:{place[1]}"

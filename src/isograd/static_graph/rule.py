"""Constructs and the rules that find them: frozen values, read from TOML."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Rule:
    """A kind of construct that the static graph takes otherwise than Python.

    message: why, in one sentence; advice: what to write instead.
    nodes: syntax that is the construct itself; calls: qualified names (a trailing dot means
    everything below), with `keyword` only where that keyword is given; methods and of: methods of
    values of a kind (list, dict, self, any); detector: a function of `detectors` where these do
    not suffice.  in_torch: whether the construct outlives conversion from torch.
    """

    code: str
    message: str
    advice: str
    nodes: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    keyword: str = ""
    methods: tuple[str, ...] = ()
    of: str = ""
    detector: str = ""
    cells: tuple[str, ...] = ()
    in_torch: bool = True


@dataclass(frozen=True)
class Construct:
    """One construct as code that runs: a class derived from `Base`, with what stands before it.

    rule: empty where the static graph takes it as Python does; counterexample: the same
    computation, written so that it compiles.
    """

    code: str
    example: str
    rule: str = ""
    title: str = ""
    counterexample: str = ""


@dataclass(frozen=True)
class Answer:
    """What one way makes of a construct.

    verdict: same, refused, differs, gradient-lost or gradient-differs; detail: why it is refused.
    """

    verdict: str
    detail: str = ""


#: The verdicts that nobody sees while the port trains.
SILENT = ("differs", "gradient-lost", "gradient-differs")
#: The ways in which each construct is executed; strict is `jit(fullgraph=True)`.
WAYS = ("jit", "graph", "strict")


@dataclass(frozen=True)
class Occurrence:
    """A construct at its place; function: the name of the function it stands in.

    lines and columns count from 1 and 0, as `ast` counts them.  inside: the function of another
    file that holds the construct, which is called here.  verdict, detail: what was executed, where
    that is known of this very function; else the rule's constructs tell.
    """

    code: str
    line: int
    end_line: int
    column: int
    function: str
    cls: str
    inside: str = ""
    verdict: str = ""
    detail: str = ""

    def seen_from(self, node: ast.AST, called: str, function: str, cls: str) -> Occurrence:
        """The construct of another file at the place that calls a function of it."""
        line: int = getattr(node, "lineno", 0)
        end: int = getattr(node, "end_lineno", None) or line
        column: int = getattr(node, "col_offset", 0)
        return replace(
            self, line=line, end_line=end, column=column, function=function, cls=cls, inside=called
        )

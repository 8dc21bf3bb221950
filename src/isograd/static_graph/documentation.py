"""The page docs/compiled.md, written from the table by `python -m` of this module.

Rules, examples and rewrites come from `data/*.toml`, what each way makes of them from
`verified-cpu.json`; a test compares the page with the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from isograd.static_graph.rewrite import is_mechanical
from isograd.static_graph.rule import Construct, Rule
from isograd.static_graph.table import VERIFIED, answers, constructs, rules

_INTRODUCTION = Path(__file__).with_name("introduction.md")
_WORDS = {
    "same": "as eagerly",
    "refused": "does not compile",
    "differs": "**another result, silently**",
    "gradient-lost": "**the gradient is zero, silently**",
    "gradient-differs": "**another gradient, silently**",
    "eager-fails": "fails eagerly too",
}


def page() -> str:
    """The whole page in Markdown."""
    parts = [_INTRODUCTION.read_text(encoding="utf-8").rstrip(), ""]
    parts += [_executed(), ""]
    parts += ["## What the static graph takes otherwise", "", *_index(), ""]
    for rule in rules().values():
        parts += _section(rule)
    parts += ["## What it takes as Python does", "", *_same()]
    return "\n".join(parts).rstrip() + "\n"


def _executed() -> str:
    table = json.loads(VERIFIED.read_text(encoding="utf-8"))
    count = len(constructs())
    return (
        f"{count} constructs, executed on MindSpore {table['mindspore']}, {table['device']}: "
        "forward and three training steps each, eagerly, under `jit`, in GRAPH_MODE, and under "
        "`jit(fullgraph=True)` (strict)."
    )


def _index() -> Iterator[str]:
    yield "| construct | jit | GRAPH_MODE | strict | isograd rewrites it for the proof |"
    yield "|---|---|---|---|---|"
    for construct in constructs():
        if construct.rule:
            cells = " | ".join(_cells(construct.code, "example"))
            mechanical = "yes" if is_mechanical(construct.rule) else ""
            anchor = construct.rule.replace(".", "")
            yield f"| [{construct.code}](#{anchor}) | {cells} | {mechanical} |"


def _cells(code: str, part: str) -> list[str]:
    found = answers(code, part)
    return [
        _WORDS[found[way].verdict] if way in found else "" for way in ("jit", "graph", "strict")
    ]


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.code}"
    yield ""
    yield f"{rule.message} {rule.advice}"
    yield ""
    if not rule.in_torch:
        yield "Only in code for MindSpore; conversion writes it otherwise."
        yield ""
    for construct in constructs():
        if construct.rule == rule.code:
            yield from _examples(construct)


def _examples(construct: Construct) -> Iterator[str]:
    refusal = next((a.detail for a in answers(construct.code).values() if a.detail), "")
    yield f"`{construct.code}`" + (f": {refusal.replace('|', '/')}" if refusal else "")
    yield ""
    yield f"```python\n{construct.example.strip()}\n```"
    yield ""
    if construct.counterexample:
        yield "Compiles:"
        yield ""
        yield f"```python\n{construct.counterexample.strip()}\n```"
        yield ""


def _same() -> Iterator[str]:
    yield "| construct | jit | GRAPH_MODE | strict |"
    yield "|---|---|---|---|"
    for construct in constructs():
        if not construct.rule:
            yield f"| {construct.title} | {' | '.join(_cells(construct.code, 'example'))} |"


if __name__ == "__main__":
    sys.stdout.write(page())

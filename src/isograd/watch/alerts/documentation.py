"""docs/alerts.md, written from the library of rules."""

from __future__ import annotations

from collections.abc import Iterator

from isograd.watch.alerts.library import RULES
from isograd.watch.alerts.rule import Rule

_HEAD = """# Alerts of `isograd watch`

Written from the library (`src/isograd/watch/alerts/`); each rule's examples and counterexamples are
its tests. An alert makes the exit status 1; a notice does not.

Thresholds, severities and rules are set in `isograd.toml` or pyproject.toml:

```toml
[tool.isograd.watch]                              # in isograd.toml: [watch]
action = "report"                                 # or stop, raise

[tool.isograd.watch.alerts."gradient.exploding"]
largest = 1e4                                     # a threshold of the rule
severity = "notice"                               # or alert
enabled = true                                    # false: the rule is not checked
```

A rule without a default threshold is silent until one is set.

Beside these, `reference.departs` (with `--against`), `rank.starts_apart` and `rank.gradients_apart`
(folders of ranks) and `randomness.differs` (with `--twice`) compare runs with each other, and
`operator.overflow` (MindInsight OO) reads Ascend's overflow flags in a folder of dumps.

| alert | severity | what it says | in other tools |
|---|---|---|---|
"""


def page() -> str:
    """The text of docs/alerts.md."""
    rows = [
        f"| [`{r.code}`](#{_anchor(r.code)}) | {r.severity.value} | {_subject(r)} | "
        f"{', '.join(r.peers)} |"
        for r in RULES
    ]
    return _HEAD + "\n".join(rows) + "\n" + "".join(_section(rule) for rule in RULES)


def _anchor(code: str) -> str:
    return code.replace(".", "").lower()


def _subject(rule: Rule) -> str:
    return rule.message.replace("|", "\\|")


def _section(rule: Rule) -> str:
    return "\n" + "\n".join(_lines(rule)) + "\n"


def _lines(rule: Rule) -> Iterator[str]:
    yield f"## {rule.code}"
    yield ""
    yield f"{rule.severity.value.capitalize()}: {rule.message}."
    yield ""
    yield f"What to do: {rule.advice}"
    yield ""
    yield f"Source: {rule.source}."
    if rule.limits:
        yield ""
        yield "| threshold | default | meaning |"
        yield "|---|---|---|"
        for limit in rule.limits:
            default = "none" if limit.default is None else f"{limit.default:g}"
            yield f"| `{limit.name}` | {default} | {limit.meaning} |"
    if rule.examples:
        yield ""
        yield "Speaks where " + "; where ".join(e.text for e in rule.examples) + "."
        yield "Silent where " + "; where ".join(e.text for e in rule.counterexamples) + "."

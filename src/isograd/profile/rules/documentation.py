"""The manual's page of rules: `python -m isograd.profile.rules.documentation` writes it."""

from __future__ import annotations

from isograd.profile.analyse.analysis import analyse
from isograd.profile.rules.catalogue import all_rules
from isograd.profile.rules.rule import Example, Rule

_HEAD = """# Rules of `isograd profile`

Written by `python -m isograd.profile.rules.documentation` from the rules themselves; tests run \
every example. A rule claims nothing below 5 % of the step.
"""


def rules_page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD, *(_section(rule) for rule in all_rules())])


def _section(rule: Rule) -> str:
    lines = [f"## {rule.code}", "", rule.question, "", f"Threshold: {rule.source}.", ""]
    for example in rule.examples:
        lines += _example(rule, example)
    silent = "; ".join(example.name for example in rule.counterexamples)
    return "\n".join([*lines, f"Silent: {silent}.", ""])


def _example(rule: Rule, example: Example) -> list[str]:
    finding = next(iter(rule.check(analyse(example.profile()))))
    quoted = [f"> {line}" for line in finding.message.splitlines()]
    advice = [f"> {line}" for line in finding.advice.splitlines()]
    return [f"Example: {example.name}. Code `{finding.code}`.", "", *quoted, ">", *advice, ""]


def main() -> None:
    """Write docs/profile-rules.md below the current folder."""
    from pathlib import Path

    from isograd.files import write_text

    write_text(Path("docs/profile-rules.md"), rules_page())


if __name__ == "__main__":
    main()

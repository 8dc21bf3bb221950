"""Verified builders, and a network converted from its graph: as text and as plain values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isograd.report.convert_json import SCHEMA
from isograd.report.wording import printable, seconds_text

if TYPE_CHECKING:
    from isograd.convert.graph.run import GraphConversion
    from isograd.convert.verifying import BuilderResult


def builders_text(results: Sequence[BuilderResult]) -> str:
    """One line for each builder, and what was found first."""
    lines = []
    for result in results:
        seeds = ", ".join(str(seed.seed) for seed in result.seeds)
        elapsed_s = sum(seed.elapsed_s for seed in result.seeds)
        known = "as before" if result.is_remembered else f"{seconds_text(elapsed_s)} s"
        given = " ".join(result.inputs) or "unknown inputs"
        words = f"{result.builder}: {result.outcome.value} (input {given}; seed {seeds}; {known})"
        lines.append(printable(words))
        if result.first_problem:
            lines.append(f"  {printable(result.first_problem)}")
        if result.outcome.value == "incomplete" and not result.paired:
            lines.append(
                "  Some weights have no partner; `isograd verify` with a rename takes them."
            )
    return "".join(f"{line}\n" for line in lines)


def builder_values(results: Sequence[BuilderResult]) -> list[dict[str, Any]]:
    """The builders for `builders` of schema isograd/convert/1."""
    return [result.as_json() for result in results]


def with_builders(text: str, results: Sequence[BuilderResult]) -> str:
    """The JSON of a conversion with its verified builders."""
    value = json.loads(text)
    value["builders"] = builder_values(results)
    return json.dumps(value, indent=2) + "\n"


def graph_text(conversion: GraphConversion) -> str:
    """What was written from the graph, and what a person has to do."""
    lines = []
    if conversion.files:
        names = ", ".join(str(path) for path in conversion.files)
        lines.append(
            f"{conversion.operators:,} operators in {conversion.classes:,} classes: {names}"
        )
    for finding in conversion.findings:
        place = f"{finding.module}: " if finding.module else ""
        lines.append(f"{finding.code}: {place}{finding.message}")
        lines.append(f"  {finding.advice}")
    return "".join(f"{printable(line)}\n" for line in lines)


def graph_json(path: str, conversion: GraphConversion, results: Sequence[BuilderResult]) -> str:
    """A conversion from the graph by schema isograd/convert/1; a finding has a module, no line."""
    findings = [
        {
            "code": finding.code,
            "level": "finish" if finding.needs_a_person else "look",
            "file": None,
            "line": 0,
            "column": 0,
            "api": None,
            "module": finding.module,
            "message": finding.message,
            "advice": finding.advice,
        }
        for finding in conversion.findings
    ]
    value = {
        "schema": SCHEMA,
        "path": path,
        "out": str(conversion.files[0].parent) if conversion.files else None,
        "target": "ops",
        "from_export": True,
        "builder": conversion.builder.text,
        "converted": conversion.operators if conversion.files else 0,
        "files": [{"file": str(file)} for file in conversion.files],
        "findings": findings,
        "builders": builder_values(results),
    }
    return json.dumps(value, indent=2) + "\n"

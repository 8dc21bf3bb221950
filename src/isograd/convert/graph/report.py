"""What `convert --from-export` answers: the conversion of a graph, and its verified builder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isograd.convert.graph.run import GraphConversion
from isograd.convert.verifying.results import BuilderResult
from isograd.report.base import Report


@dataclass(frozen=True)
class ExportReport(Report):
    """A network written from its graph; path: the reference."""

    path: str
    conversion: GraphConversion
    builders: tuple[BuilderResult, ...] = ()

    @property
    def needs_action(self) -> bool:
        """Whether something is left to finish, or the builder is not equivalent."""
        return self.conversion.needs_a_person or any(
            not result.is_equivalent for result in self.builders
        )

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes: schema isograd/convert/1; a finding has a module, no line."""
        conversion = self.conversion
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
        return {
            "schema": "isograd/convert/1",
            "path": self.path,
            "out": str(conversion.files[0].parent) if conversion.files else None,
            "target": "ops",
            "from_export": True,
            "builder": conversion.builder.text,
            "converted": conversion.operators if conversion.files else 0,
            "files": [{"file": str(file)} for file in conversion.files],
            "findings": findings,
            "builders": [result.as_json() for result in self.builders],
        }

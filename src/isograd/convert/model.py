"""What a conversion answers: frozen values, no input or output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from isograd.report.base import Report

if TYPE_CHECKING:
    from isograd.convert.verifying.results import BuilderResult


class Level(str, Enum):
    """What a person has to do about a finding: finish it, or look whether it is meant so."""

    FINISH = "finish"
    LOOK = "look"


@dataclass(frozen=True, order=True)
class Finding:
    """A place that was not converted, or not beyond doubt; line and column count from 1.

    line 0 is the whole file.  The line is that of the reference; in a notebook it counts in its
    cell, which counts from 1 (0: no notebook).
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    advice: str = ""
    level: Level = Level.FINISH
    api: str = ""
    cell: int = 0


@dataclass(frozen=True)
class RuntimeUse:
    """A runtime function or layer in a port.

    api, why: the API of torch that it replaces, empty where there is none, and why
    MindSpore's own does not.  uses: places in the port.
    file, line: the first of them.
    """

    name: str
    file: str
    line: int
    uses: int
    api: str = ""
    why: str = ""


@dataclass(frozen=True)
class FileConversion:
    """One file of the output.

    lines: of code; 0 where the file is none.  uses: places that use torch; converted: those that
    were written anew.  runtime: the runtime functions that it uses.  original, port: the two texts,
    kept only where a report draws them.
    """

    file: str
    lines: int = 0
    uses: int = 0
    converted: int = 0
    is_changed: bool = False
    findings: tuple[Finding, ...] = ()
    runtime: tuple[RuntimeUse, ...] = ()
    original: str | None = field(default=None, repr=False)
    port: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ConvertReport(Report):
    """The whole answer of `isograd convert`.

    path: what was converted; out: where it lies, or empty where nothing was written.  compositions:
    the generated modules, with the names that each holds.  copied: files that were carried over as
    they are.  builders: those that were verified.  suppressed: findings that comments or options
    ignore.  skipped: files and folders that git ignores or an option excludes.
    """

    path: str
    out: str
    target: str
    files: tuple[FileConversion, ...]
    compositions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    copied: int = 0
    torch: str = ""
    mindspore: str = ""
    device: str = ""
    elapsed_s: float = 0.0
    builders: tuple[BuilderResult, ...] = ()
    suppressed: int = 0
    skipped: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """What `--json` writes, as plain values."""
        from isograd.convert.data import report_value

        return report_value(self)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all files."""
        return tuple(finding for file in self.files for finding in file.findings)

    @property
    def runtime(self) -> tuple[RuntimeUse, ...]:
        """The runtime functions that the port uses, the most used first."""
        return _together(use for file in self.files for use in file.runtime)

    @property
    def lines(self) -> int:
        """The lines of code that were read."""
        return sum(file.lines for file in self.files)

    @property
    def uses(self) -> int:
        """The places that use torch."""
        return sum(file.uses for file in self.files)

    @property
    def converted(self) -> int:
        """The places that were written anew."""
        return sum(file.converted for file in self.files)

    @property
    def needs_action(self) -> bool:
        """Whether something is left to finish, or a builder is not equivalent."""
        return any(finding.level is Level.FINISH for finding in self.findings) or any(
            not result.is_equivalent for result in self.builders
        )


def _together(uses: Iterable[RuntimeUse]) -> tuple[RuntimeUse, ...]:
    """One row for each runtime function of a project, the most used first."""
    found: dict[str, RuntimeUse] = {}
    for use in sorted(uses, key=lambda use: (use.file, use.line)):
        known = found.get(use.name)
        if known is None:
            found[use.name] = use
        else:
            reason = known if known.api else use
            total = known.uses + use.uses
            found[use.name] = replace(known, uses=total, api=reason.api, why=reason.why)
    return tuple(sorted(found.values(), key=lambda use: (-use.uses, use.name)))

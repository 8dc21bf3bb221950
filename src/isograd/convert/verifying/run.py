"""Verifies builders one after another, each on its seeds, and remembers what is finished."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from isograd.convert.verifying.builders import Builder
from isograd.convert.verifying.case_folder import CaseFolder
from isograd.convert.verifying.journal import Journal, versions
from isograd.convert.verifying.places import Place
from isograd.convert.verifying.results import BuilderResult, Outcome, SeedResult
from isograd.errors import FrameworkMissingError, IsogradError
from isograd.model import Finding, Stage, Verdict, VerifyReport
from isograd.progress import Progress, SilentProgress
from isograd.verify import verify_case
from isograd.verify.case import TensorSpec

_OUTCOMES = {
    Verdict.EQUIVALENT: Outcome.EQUIVALENT,
    Verdict.DIVERGENT: Outcome.DIVERGENT,
    Verdict.INCOMPLETE: Outcome.INCOMPLETE,
}
#: Findings that say that a weight has no partner.
_UNPAIRED = ("parameter.missing", "parameter.extra", "parameter.shape")
_MOST_FINDINGS = 20
Runner = Callable[[Path, int], VerifyReport]


@dataclass(frozen=True)
class VerifyOptions:
    """How builders are verified.

    inputs: of every network, or empty to guess them from its first layer.  journal: a folder in
    which finished builders are remembered.  reference_python: the interpreter that has torch.
    compiled: as in a case of `verify`.
    """

    inputs: tuple[TensorSpec, ...] = ()
    seeds: tuple[int, ...] = (0,)
    mode: str = "both"
    steps: int = 3
    journal: Path | None = None
    reference_python: str | None = None
    compiled: str = "off"


def verify_builders(
    original: Place,
    port: Place,
    builders: Sequence[Builder],
    options: VerifyOptions,
    progress: Progress | None = None,
    port_builders: Sequence[Builder] | None = None,
) -> Iterator[BuilderResult]:
    """Verify each builder of the reference against the one of the same name in the port.

    port_builders: the port's own, in the same order, where they are called otherwise.  Results are
    yielded as they are finished.  Raises FrameworkMissingError where a framework lacks.
    """
    listener = progress or SilentProgress()
    partners = builders if port_builders is None else port_builders
    for number, (builder, partner) in enumerate(zip(builders, partners, strict=True)):
        listener.advance(number, len(builders), builder.text)
        yield _One(original, port, builder, partner, options, listener).verify()
    listener.advance(len(builders), len(builders), "")


class _One:
    """The verification of one builder."""

    def __init__(
        self,
        original: Place,
        port: Place,
        builder: Builder,
        partner: Builder,
        options: VerifyOptions,
        progress: Progress,
    ) -> None:
        self._sides = (original, port, builder, partner)
        self._builder = builder
        self._options = options
        self._progress = progress
        self._journal = Journal(options.journal)
        self._files: dict[str, set[str]] = {"reference": set(), "port": set()}

    def verify(self) -> BuilderResult:
        question = self._question()
        remembered = self._journal.load(question)
        if remembered is not None:
            return remembered
        inputs = self._options.inputs
        seeds = []
        for seed in self._options.seeds:
            result, inputs = self._seed(seed, inputs)
            seeds.append(result)
            if result.outcome not in _OUTCOMES.values():
                break  # another seed would say the same
        texts = tuple(text_of(spec) for spec in inputs)
        ports = tuple(sorted(self._files["port"]))
        found = BuilderResult(self._builder.text, texts, tuple(seeds), ports)
        if found.outcome in _OUTCOMES.values():  # else not all files that matter were imported
            self._journal.store(question, found, set().union(*self._files.values()))
        return found

    def _question(self) -> str:
        options = self._options
        original, port, builder, partner = self._sides
        parts = [
            builder.text,
            partner.text,
            [str(root) for root in (*original.roots, *port.roots)],
            [text_of(spec) for spec in options.inputs],
            list(options.seeds),
            options.mode,
            options.steps,
            options.compiled,
            options.reference_python,
            versions(),
        ]
        return json.dumps(parts)

    def _seed(
        self, seed: int, inputs: tuple[TensorSpec, ...]
    ) -> tuple[SeedResult, tuple[TensorSpec, ...]]:
        """One run; the inputs are guessed by the first."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="isograd-convert-") as name:
            folder = CaseFolder(Path(name), *self._sides, self._options.reference_python)
            if not inputs:
                guessed = folder.guess_inputs()
                if isinstance(guessed, str):
                    built = folder.notes("reference").built
                    outcome = Outcome.NO_INPUTS if built else Outcome.NO_ORIGINAL
                    return _failed(seed, outcome, guessed, begin), inputs
                inputs = guessed
            options = self._options
            path = folder.write_case(inputs, options.mode, options.steps, options.compiled)
            try:
                report = verify_case(path, seed=seed, keep=None, progress=self._progress)
                result = result_of(report)
            except FrameworkMissingError:
                raise
            except IsogradError as error:
                result = _failed(seed, _stopped(folder), error.what, begin)
            for side, known in self._files.items():
                known.update(folder.notes(side).files)
        return result, inputs


def _stopped(folder: CaseFolder) -> Outcome:
    """How far a verification came that was stopped by an error."""
    reference, port = folder.notes("reference"), folder.notes("port")
    if not reference.built:
        return Outcome.NO_ORIGINAL
    if not port.imported:
        return Outcome.NO_IMPORT
    return Outcome.FAILED if port.built else Outcome.NO_BUILD


def _failed(seed: int, outcome: Outcome, problem: str, begin: float) -> SeedResult:
    return SeedResult(seed, outcome, problem=problem, elapsed_s=time.monotonic() - begin)


def result_of(report: VerifyReport) -> SeedResult:
    """What one run of the ladder said, in short."""
    unpaired = [f for f in report.findings if f.code in _UNPAIRED]
    gaps = [gap for gap in report.gaps if gap.stage is Stage.PARAMETERS]
    diverging = [finding for finding in report.findings if finding.diverges]
    return SeedResult(
        report.seed,
        _OUTCOMES[report.verdict],
        paired=not unpaired and not gaps,
        by_name=all(p.how == "name" or p.reference == p.port for p in report.pairs),
        divergence=_words(diverging[0]) if diverging else _first_stage(report),
        findings=tuple(_words(finding) for finding in report.findings[:_MOST_FINDINGS]),
        gaps=tuple(f"{gap.stage.value}: {gap.what}: {gap.why}" for gap in report.gaps),
        stages=tuple((stage.stage.value, stage.verdict.value) for stage in report.stages),
        elapsed_s=report.elapsed_s,
        modules=tuple(
            (finding.module, _compiled_words(finding))
            for finding in report.findings
            if finding.stage is Stage.COMPILED
        ),
    )


def _compiled_words(finding: Finding) -> str:
    """What is to be done for a module that the static graph does not take as it is."""
    where = finding.fix.where if finding.fix is not None else None
    line = where or finding.message
    if finding.cause is not None and finding.cause.proved:
        return f"compiles after the rewrite of {line}: {finding.cause.text}"
    if finding.code == "compiled.refused":
        return f"runs eagerly because of {line}" + (f": {finding.message}" if where else "")
    return f"has another result when compiled: {finding.message}" + (f" ({where})" if where else "")


def _first_stage(report: VerifyReport) -> str:
    """The first stage that differs, where no finding says it."""
    found = [s for s in report.stages if s.verdict.value == "divergent"]
    return f"{found[0].stage.value}: {found[0].detail}" if found else ""


def _words(finding: Finding) -> str:
    place = finding.module or "the network"
    ratio = "" if finding.ratio is None else f", {finding.ratio:.1e} × the noise"
    cause = "" if finding.cause is None else f" [{finding.cause.id}]"
    fix = "" if finding.fix is None or finding.fix.where is None else f" at {finding.fix.where}"
    severity = finding.severity.value
    return f"{finding.stage.value}, {severity}, {place}: {finding.message}{ratio}{cause}{fix}"


def text_of(spec: TensorSpec) -> str:
    """An input as it is written on the command line."""
    text = "x".join(map(str, spec.shape))
    if spec.dtype != "float32":
        text += f":{spec.dtype}"
    if spec.fill == "integers" and spec.high is not None:
        text += f"<{spec.high:.0f}"
    return text

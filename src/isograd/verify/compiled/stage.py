"""Stage compiled as a whole: run every way, find who is to blame, and say it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from isograd.errors import IsogradError
from isograd.frameworks.capabilities import CompilesModules
from isograd.model import Finding, Fix, Severity, Stage
from isograd.pairing.modules import pair_modules
from isograd.verify.compiled.causes import explain
from isograd.verify.compiled.judge import Deviation, WayResult
from isograd.verify.compiled.locate import Located, Locator
from isograd.verify.compiled.port import CompiledPort
from isograd.verify.compiled.ways import WayRuns, words_of
from isograd.verify.findings import finite, words
from isograd.verify.session import Session

_WAYS = ("jit", "graph")
_REFUSED, _DIFFERS, _LOST = "compiled.refused", "compiled.differs", "compiled.gradient-lost"


@dataclass
class CompiledResult:
    """What the stage found.

    asks: where the port itself asks to be compiled; refused: whether a way does not compile.
    """

    findings: list[Finding] = field(default_factory=list)
    checked: int = 0
    detail: str = ""
    refused: bool = False
    asks: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


def begin_compiled(session: Session) -> CompiledPort:
    """Begin to compile while other stages run; both networks have the weights to compile with."""
    port = CompiledPort(session, "mindspore-compiled")
    port.ahead(WayRuns(session, port, _WAYS).first_requests())
    return port


def run_compiled(session: Session, port: CompiledPort | None = None) -> CompiledResult:
    """Compile the port both ways, and its own way where it asks for one."""
    port = port or CompiledPort(session, "mindspore-compiled")
    try:
        return _run(session, port)
    except IsogradError as error:
        # What the eager stages found must not be lost with the process that compiles.
        if session.case.compiled == "required":
            raise
        return CompiledResult(detail=f"could not be run: {error.what}", refused=True)


def _run(session: Session, port: CompiledPort) -> CompiledResult:
    result = CompiledResult()
    with port:
        runs = WayRuns(session, port, _WAYS).run()
        result.asks = tuple(port.plain(CompilesModules.asks))
        own = _own(session, result.asks)
        result.checked = sum(r.checked for r in (*runs.values(), *own))
        result.notes += [n for r in runs.values() for n in r.notes]
        result.refused = any(r.refusal is not None for r in (*runs.values(), *own))
        bad = [r for r in runs.values() if not r.is_clean]
        insists = session.case.compiled == "required" or any(not r.is_clean for r in own)
        for way in bad:
            if any(f.diverges for f in result.findings):
                break  # the other way compiles the same code: it is looked at once this is mended
            result.findings += _findings(session, port, way, insists)
        result.findings = _without_echoes(result.findings)
        if not bad:
            result.findings += [f for r in own if not r.is_clean for f in _own_findings(session, r)]
    result.detail = _detail(bad, session)
    return result


def diagnose_compiled(session: Session, module: str, mode: str, backward: bool) -> list[Finding]:
    """What the static graph makes of one module of the port, by its name there."""
    case = session.case
    if not case.wants_compiled:
        return []
    with CompiledPort(session, "mindspore-compiled") as port:
        insists = case.compiled == "required" or bool(port.plain(CompilesModules.asks))
        found: list[Finding] = []
        for way in _WAYS:
            located = Locator(session, port, way, mode, backward).below(module)
            found += _explained(session, port, WayResult(way, mode=mode), located, insists)
            if any(finding.diverges for finding in found):
                break
    return _without_echoes(found)


def _without_echoes(findings: list[Finding]) -> list[Finding]:
    """A module that differs one way and is refused the other has one finding."""
    differing = {f.module for f in findings if f.diverges}
    kept = [f for f in findings if f.diverges or f.module not in differing]
    return list(dict.fromkeys(kept))


def _own(session: Session, asks: tuple[str, ...]) -> list[WayResult]:
    """The port's own `jit` and mode, where it has them."""
    if not asks:
        return []
    with CompiledPort(session, "mindspore-own") as port:
        return list(WayRuns(session, port, ("own",)).run().values())


def _detail(bad: list[WayResult], session: Session) -> str:
    what = "jit and GRAPH_MODE against the eager run: outputs"
    if session.case.reference.loss is not None:
        what += ", gradients, training steps"
    refused = [words_of(r.way) for r in bad if r.refusal is not None]
    if refused:
        what += f"; {' and '.join(refused)} refused it"
    return what


def _findings(
    session: Session, port: CompiledPort, result: WayResult, insists: bool
) -> Iterable[Finding]:
    """What one way shows, at the modules that are to blame."""
    located = Locator(session, port, result.way, result.mode).run()
    worst = result.worst
    if not located:
        if worst is not None and not _is_rounding(worst):
            yield _whole(session, result, worst)
        elif result.refusal is not None:
            yield _refused_whole(result, insists)
        return
    yield from _explained(session, port, result, located, insists)


def _explained(
    session: Session,
    port: CompiledPort,
    result: WayResult,
    located: list[Located],
    insists: bool,
) -> Iterable[Finding]:
    """A finding of each module that is to blame, with what explains it."""
    backward = session.case.reference.loss is not None
    for found in located:
        finding = _at(session, result, found, insists)
        explained = explain(port, found, result.way, backward)
        if not explained:
            yield finding
        for explanation in explained:
            yield dataclasses.replace(finding, cause=explanation.cause, fix=explanation.fix)


def _is_rounding(worst: Deviation) -> bool:
    """Little more than the envelope, and no module differs alone: rounding that met a kink."""
    return worst.comparison.ratio < 100.0 and not worst.lost


def _whole(session: Session, result: WayResult, worst: Deviation) -> Finding:
    code = _LOST if worst.lost else _DIFFERS
    infos, _ = session.infos()
    name = worst.key.removeprefix("gradient.parameter.").removeprefix("state.")
    module = infos[name].module if name in infos else ""
    return Finding(
        code,
        Severity.EFFECTIVE,
        Stage.COMPILED,
        module,
        f"under {words_of(result.way)} {words(worst.key)} "
        f"{'is zero' if worst.lost else 'differs'} although every module agrees alone",
        finite(worst.comparison.ratio),
        worst.step,
        result.mode,
        worst.comparison.evidence,
        isolated=False,
    )


def _refused_whole(result: WayResult, insists: bool) -> Finding:
    assert result.refusal is not None
    said = result.refusal.get("refused", "")
    place = result.refusal.get("place")
    return Finding(
        _REFUSED,
        Severity.EFFECTIVE if insists else Severity.EQUIVALENT,
        Stage.COMPILED,
        "",
        f"{words_of(result.way)} does not compile the network: {said}",
        mode=result.mode,
        fix=Fix("write this line otherwise", _where(place)) if place else None,  # type: ignore[arg-type]
    )


def _own_findings(session: Session, result: WayResult) -> Iterable[Finding]:
    worst = result.worst
    if worst is not None:
        yield _whole(session, result, worst)
    else:
        yield _refused_whole(result, insists=True)


def _where(place: tuple[str, int] | tuple[str, int, int]) -> str:
    return f"{Path(place[0]).name}:{place[1]}"


def _at(session: Session, result: WayResult, found: Located, insists: bool) -> Finding:
    """The finding of one module that is to blame."""
    way = words_of(result.way)
    if found.verdict == "refused":
        code, severity = _REFUSED, Severity.EFFECTIVE if insists else Severity.EQUIVALENT
        said = f"{way} does not compile it: {found.detail.get('refused', '')}"
    elif found.verdict == "gradient-lost":
        code, severity = _LOST, Severity.EFFECTIVE
        said = f"under {way} {_tensor(found)} is zero, eagerly it is not"
    else:
        code, severity = _DIFFERS, Severity.EFFECTIVE
        said = f"under {way} {_tensor(found)} is another than eagerly"
    if found.call is None:
        said = f"the loss {session.case.port.loss}: {said}"
    worst = result.worst
    fix = Fix("write it otherwise", _where(found.place)) if found.place else None
    finding = Finding(
        code,
        severity,
        Stage.COMPILED,
        _reference_name(session, found.module),
        said,
        mode=result.mode,
        fix=fix,
    )
    if worst is not None and code != _REFUSED:
        ratio = finite(worst.comparison.ratio)
        finding = dataclasses.replace(finding, ratio=ratio, evidence=worst.comparison.evidence)
    return finding


def _tensor(found: Located) -> str:
    key = str(found.detail.get("tensor", "its result"))
    return words(key) if "." in key else key


def _reference_name(session: Session, module: str) -> str:
    """The reference's module that this one of the port is, or the nearest one around it."""
    pairing = pair_modules(session.reference_structure, session.port_structure, session.pairing)
    names = {pair.port: pair.reference for pair in pairing.pairs}
    while module and module not in names:
        module = module.rpartition(".")[0]
    return names.get(module, "")

"""What the stages say: findings made of the judgements that they collect."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping

from isograd.errors import IsogradError
from isograd.frameworks.base import DropoutSite
from isograd.grouping import listed
from isograd.model import Cause, Finding, Fix, Severity, Stage
from isograd.noise.envelope import END_TO_END_THRESHOLD, ISOLATED_THRESHOLD
from isograd.tensors import Role, TensorKey, keyed
from isograd.verify.end_to_end import PassResult
from isograd.verify.explain import fix_of
from isograd.verify.parameters import fix_at
from isograd.verify.rates import as_written, rates_differ, reach
from isograd.verify.session import Session
from isograd.verify.training import StepsResult
from isograd.worker.protocols import Chance, Fixes

_MOST_NAMES = 4
#: A proof draws anew: what the finding drew may have been an accident.
_PROOF_SEED = 1


def whole_findings(
    session: Session, stage: Stage, mode: str, whole: PassResult, prefixes: tuple[str, ...]
) -> Iterator[Finding]:
    """What differs end to end; for passes in which every module agrees alone."""
    for key, problem in whole.problems.items():
        if key.startswith(prefixes):
            yield Finding(
                f"{stage.value}.shape",
                Severity.EFFECTIVE,
                stage,
                "",
                f"{words(key)} of the whole network: {problem}",
                mode=mode,
            )
    for counting in (True, False):
        keys = [k for k in whole.comparisons if session.counts(k) is counting]
        worst = dataclasses.replace(
            whole, comparisons={k: whole.comparisons[k] for k in keys}
        ).worst(*prefixes)
        if worst is None or not worst[1].exceeds(END_TO_END_THRESHOLD):
            continue
        key, comparison = worst
        how = "although every module agrees alone"
        if not counting:
            how = "and no parameter depends on it"
        if TensorKey(key).role is Role.PARAMETER and key in whole.one_sided:
            how += f"; {_sides(whole.one_sided)}"
        yield Finding(
            f"{stage.value}.end_to_end",
            Severity.EFFECTIVE if counting else Severity.EQUIVALENT,
            stage,
            _owner(session, key),
            f"{words(key)} differs end to end {how}",
            finite(comparison.ratio),
            mode=mode,
            evidence=comparison.evidence,
            isolated=False,
        )


def output_findings(session: Session, passes: Mapping[str, PassResult]) -> Iterator[Finding]:
    """Outputs that only the port returns: equivalent where the loss does without them."""
    known: list[dict[str, tuple[int, ...]]] = []
    for mode in session.case.modes:
        more = passes[mode].only_in_port
        if not more or more in known:
            continue
        known.append(more)
        losses = [p.comparisons.get("loss") for p in passes.values() if p.only_in_port == more]
        judged = [loss for loss in losses if loss is not None]
        agrees = judged and not any(loss.exceeds(END_TO_END_THRESHOLD) for loss in judged)
        shown = [f"{words(key)} of shape {shape}" for key, shape in more.items()]
        yield Finding(
            "forward.outputs",
            Severity.EQUIVALENT if agrees else Severity.EFFECTIVE,
            Stage.FORWARD,
            "",
            f"the port also returns {', '.join(shown)}, which the reference does not",
            mode=mode,
        )


def _sides(one_sided: dict[str, str]) -> str:
    """Which parameters have a gradient in one network only."""
    parts = []
    for side, other in (("port", "reference"), ("reference", "port")):
        keys = [key for key, own in keyed(one_sided) if own == side and key.role is Role.PARAMETER]
        names = [key.name for key in keys]
        if names:
            parts.append(f"only the {side} has a gradient for {listed(names)}, the {other} none")
    return "; ".join(parts)


def _owner(session: Session, key: str) -> str:
    found = TensorKey(key)
    return module_of(session, found.name) if found.role is Role.PARAMETER else ""


def dropout_findings(session: Session, mode: str) -> Iterator[Finding]:
    """Dropouts that are active on one side only, or with another probability."""
    pending = session.reference.begin(Chance.dropout_sites, mode)
    theirs = session.port.ask(Chance.dropout_sites, mode)
    ours = pending.answer()
    if len(ours) != len(theirs):
        ours = tuple(site for site in ours if site.probability)
        theirs = tuple(site for site in theirs if site.probability)
    if len(ours) != len(theirs):
        fewer = session.reference if len(ours) < len(theirs) else session.port
        if fewer.ask(Chance.draws_by_hand):
            return  # masks by hand take their place, and the factor of what they keep is compared
        yield Finding(
            "forward.dropout",
            Severity.EFFECTIVE,
            Stage.FORWARD,
            (ours or theirs)[0].module if ours else "",
            f"in {mode} mode {len(ours)} dropouts are active in the reference and "
            f"{len(theirs)} in the port",
            mode=mode,
            cause=Cause(
                "dropout.active",
                len(ours),
                len(theirs),
                text=f"{len(theirs)} active dropouts instead of {len(ours)} in {mode} mode",
            ),
        )
        return
    if mode == "eval" and not any(site.probability for site in (*ours, *theirs)):
        yield from _draws_of_one_side(session)
    for number, (first, second) in enumerate(zip(ours, theirs, strict=True)):
        if not rates_differ(first, second):
            continue
        cause, fix = _dropout_cause(session, mode, number, first, second)
        yield Finding(
            "forward.dropout",
            Severity.EFFECTIVE,
            Stage.FORWARD,
            first.module,
            f"in {mode} mode dropout zeroes {second.probability:.1%} in the port and "
            f"{first.probability:.1%} in the reference",
            mode=mode,
            cause=cause,
            fix=fix,
        )


def _draws_of_one_side(session: Session) -> Iterator[Finding]:
    """A network that draws where the other computes: neutral chance would hide it."""
    ours, theirs = session.reference.ask(Chance.draws), session.port.ask(Chance.draws)
    if bool(ours) == bool(theirs):
        return
    side, other = ("port", "reference") if theirs else ("reference", "port")
    text = f"in eval mode the {side} draws random numbers ({some(theirs or ours)}), "
    text += f"the {other} draws none"
    yield Finding(
        "forward.random",
        Severity.EFFECTIVE,
        Stage.FORWARD,
        "",
        text,
        mode="eval",
        cause=Cause("random.active", some(ours) or None, some(theirs) or None, text=text),
    )


def _dropout_cause(
    session: Session, mode: str, number: int, ours: DropoutSite, theirs: DropoutSite
) -> tuple[Cause, Fix | None]:
    """The cause of a differing dropout; proved by measuring the port's dropout built anew."""
    wanted, found = as_written(ours), as_written(theirs)
    advice = f"dropout with probability {wanted:g}, as in the reference, belongs here"
    here = theirs.where
    fix = Fix(advice, here) if here else fix_at(session, theirs.module, advice)
    proved = False
    if wanted and found:
        name, text = "dropout.p", f"dropout with probability {found:g} instead of {wanted:g}"
        proved, proved_fix = _dropout_proof(session, mode, number, ours, theirs)
        fix = proved_fix or fix
    else:
        name = "dropout.active"
        text = f"dropout is active in {mode} mode, in the reference it is not"
        if wanted:
            text = f"dropout is not active in {mode} mode, in the reference it is"
    return Cause(name, wanted, found, proved=proved, text=text), fix


def _dropout_proof(
    session: Session, mode: str, number: int, ours: DropoutSite, theirs: DropoutSite
) -> tuple[bool, Fix | None]:
    """Whether new draws show the difference again, and none once the port is built anew.

    Refused where the fix changes the rate by less than the measurement knows it.
    """
    wanted = as_written(ours)
    if abs(wanted - theirs.probability) <= reach(ours) + reach(theirs):
        return False, None
    try:
        change = session.port.ask(Fixes.fix_for, theirs.module, "dropout", "p", wanted)
        if change is None:
            return False, None
        pending = session.reference.begin(Chance.dropout_sites, mode, _PROOF_SEED)
        before = session.port.ask(Chance.dropout_sites, mode, _PROOF_SEED)
        after = session.port.ask(Chance.dropout_sites, mode, _PROOF_SEED, (change,))
        again = pending.answer()
    except IsogradError as error:
        session.note_unanswered(f"the dropout {theirs.module} was not proved", error)
        return False, None
    if min(len(before), len(after), len(again)) <= number:
        return False, None
    stays = rates_differ(again[number], before[number])
    if not stays or rates_differ(again[number], after[number]):
        return False, None
    return True, fix_of(session, (change,), theirs.module)


def loss_findings(session: Session, result: PassResult) -> Iterator[Finding]:
    """What differs in the loss alone and in its gradients, given the reference's outputs."""
    name = session.case.port.loss
    for key, problem in result.problems.items():
        message = f"{key} of {name}: {problem}"
        yield Finding("loss.shape", Severity.EFFECTIVE, Stage.LOSS, "", message)
    if result.problems:
        return  # what its gradients then are only follows
    wrong = [(k, c) for k, c in result.comparisons.items() if c.exceeds(ISOLATED_THRESHOLD)]
    if wrong:
        key, comparison = max(wrong, key=lambda item: item[1].ratio)
        names = " and ".join(words(k) for k, _ in wrong)
        verb = "differs" if len(wrong) == 1 else "differ"
        value = result.comparisons.get("loss")
        shown = ""
        if value is not None and value.evidence.greatest_reference is not None:
            shown = f": {value.evidence.greatest_reference:.6g} in the reference, "
            shown += f"{value.evidence.greatest_port:.6g} in the port"
        yield Finding(
            "loss.value",
            Severity.EFFECTIVE,
            Stage.LOSS,
            "",
            f"the loss {name}, given the reference's outputs: {names} {verb}{shown}",
            finite(comparison.ratio),
            evidence=comparison.evidence,
        )


def step_findings(
    session: Session, stage: Stage, result: StepsResult, wrong: dict[str, int]
) -> Iterator[Finding]:
    """One finding for the optimizer where nearly all differ, else one for each module."""
    if not wrong:
        return
    infos, _ = session.infos()
    compared = [n for n in result.worst if n == "loss" or infos[n].trainable]
    differing = [n for n in compared if n in wrong]
    by_module: dict[str, list[str]] = {}
    if len(differing) > 1 and len(differing) >= 0.8 * len(compared):
        by_module[""] = differing
    else:
        for name in wrong:
            by_module.setdefault(module_of(session, name), []).append(name)
    for module, names in by_module.items():
        step = min(wrong[n] for n in names)
        worst = max(names, key=lambda n: result.worst[n][1].ratio)
        comparison = result.worst[worst][1]
        what = f"{worst} differs after the step"
        if len(names) > 1:
            others = some(n for n in names if n != worst)
            what = f"{len(names)} of {len(compared)} tensors differ after the step: {worst}"
            what += f" most, then {others}"
        if any(n in result.untouched for n in names):
            what += "; the reference has no gradient for it and leaves it alone"
        yield Finding(
            f"{stage.value}.parameters",
            Severity.EFFECTIVE,
            stage,
            module,
            what,
            finite(comparison.ratio),
            step,
            evidence=comparison.evidence,
        )


def module_of(session: Session, name: str) -> str:
    """The reference's module that owns a parameter or buffer."""
    infos, _ = session.infos()
    return infos[name].module if name in infos else ""


def finite(ratio: float) -> float | None:
    """The ratio, or None where a report cannot hold it."""
    return ratio if math.isfinite(ratio) else None


def some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(found[:_MOST_NAMES]) + more


def words(key: str) -> str:
    """A tensor's key as a reader would call it."""
    found = TensorKey(key)
    if found.role is Role.PARAMETER:
        return f"the gradient of {found.name}"
    what = found.of.replace(".", " ")
    return f"the gradient of {what}" if found.is_gradient else f"the {what}"

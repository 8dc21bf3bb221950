"""Findings of stage update with their causes: searched, proved, and put into words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from isograd.diagnose.update.parts import Blame, blame_rules, blame_with
from isograd.diagnose.update.problem import Updates
from isograd.diagnose.update.words import Words, explanation_words, places, some_names
from isograd.edits import SourceEdit
from isograd.frameworks.base import Arithmetic, Tensors
from isograd.model import Cause, Finding, Fix, Severity, Stage
from isograd.verify.update_proof import MadeOptimizer, Proof
from isograd.worker.asking import Asker
from isograd.worker.protocols import Fixes, Rules

if TYPE_CHECKING:
    from isograd.verify.session import Session
    from isograd.verify.training import StepsResult, UpdateRecord


class RemoteRules:
    """The reference's worker as one that replays rules."""

    def __init__(self, reference: Asker) -> None:
        self._reference = reference

    def update_outline(self) -> dict[str, Any]:
        """The rules of the reference's optimizer by parameter."""
        return self._reference.ask(Rules.update_outline)

    def update_slices(self, names: list[str]) -> Tensors:
        """The watched elements of these parameters and of their gradients.

        returns: (watched,) initially and (steps, watched) step by step, float64.
        """
        return self._reference.ask(Rules.update_slices, names)

    def measure_rules(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Other rules on the watched elements, with their envelope.

        returns: (steps, watched) trajectories and (steps,) allowances, float64.
        """
        return self._reference.ask(Rules.measure_rules, rules, variants, keep, dtype)


@dataclass
class Explained:
    """What stage update found.

    findings: of the parts that are explained, and of the parameters that are left out;
    unexplained: the parameters that no hypothesis explains; granted: the rules, as plain values,
    that the port follows for the explained ones.
    """

    findings: list[Finding] = field(default_factory=list)
    unexplained: set[str] = field(default_factory=set)
    granted: dict[str, dict[str, Any]] = field(default_factory=dict)


def explain_updates(
    session: Session,
    record: UpdateRecord,
    result: StepsResult,
    left_out: list[Finding],
    again: Callable[[], set[str]],
) -> Explained:
    """Name the rule that the port follows wherever its updates differ.

    again: feeds gradients of other batches, for the proofs; the parameters that differ then.
    """
    explained = Explained(list(left_out), set(result.first))
    if not result.first and not left_out:
        return explained
    infos, _ = session.infos()
    dtypes = {n: i.dtype for n, i in infos.items()}
    updates = Updates(RemoteRules(session.reference), record.port, dtypes)
    if not updates.parameters:
        return explained
    proof = Proof(session, record, updates)
    line = proof.line()
    missing = _left_out_names(session, left_out)
    searched = {
        n: result.worst[n][1].ratio
        for n in result.first
        if n in updates.parameters and n not in result.untouched and n not in missing
    }
    agreeing = _agreeing_without_gap(session, updates, proof, missing)
    if agreeing is not None:
        # A norm over all gradients lacks those of the missing ones: all others differ as well.
        consequences = {n for n in searched if n in agreeing}
        explained.unexplained -= consequences
        explained.granted |= _rules_without(updates, missing, consequences)
        searched = {n: r for n, r in searched.items() if n not in consequences}
    proved = {n for n in missing if agreeing is not None and n in agreeing}
    explained.findings = [_left_out_cause(f, missing, proved, line) for f in left_out]
    for name in missing:
        explained.unexplained.discard(name)
    blames = blame_rules(updates, searched)
    told = [_settled(proof, updates, b) for b in blames if b.explanation is not None]
    made = proof.made()
    # Before the proofs, which make the reference forget these steps.
    words = [_words(updates, one.blame, made) for one in told]
    told = [_confirmed(proof, one, again) for one in told]
    for one in told:
        explained.unexplained -= set(one.blame.names)
        explained.granted |= {n: r.plain() for n, r in one.blame.rules.items()}
    explained.findings += _findings(session, updates, told, words, result, made)
    return explained


@dataclass(frozen=True)
class _Told:
    """An explained part; mending: the change of the port's optimizer that removes it."""

    blame: Blame
    mending: dict[str, Any] | None

    @property
    def proved(self) -> bool:
        return self.mending is not None


def _confirmed(proof: Proof, one: _Told, again: Callable[[], set[str]]) -> _Told:
    """Without the proof where the gradients of other batches do not confirm it."""
    if one.mending is None or proof.holds_again(one.mending, one.blame.names, again):
        return one
    return _Told(one.blame, None)


def _settled(proof: Proof, updates: Updates, blame: Blame) -> _Told:
    """Prove the likeliest; where that fails but another that is as likely is proved, take it."""
    explanation = blame.explanation
    assert explanation is not None
    mending = proof.mending(blame)
    if mending is not None:
        return _Told(blame, mending)
    for other in explanation.others:
        rest = (explanation, *(o for o in explanation.others if o is not other))
        changed = blame_with(updates, blame, replace(other, others=rest))
        mending = proof.mending(changed)
        if mending is not None:
            return _Told(changed, mending)
    return _Told(blame, None)


def _words(updates: Updates, blame: Blame, made: MadeOptimizer) -> tuple[Words, ...]:
    """What is said of each cause of a part."""
    assert blame.explanation is not None
    part = updates.part(blame.names)
    clipping = updates.clipping(part)
    return tuple(explanation_words(blame.explanation, part.rule, clipping, made.kind))


def _findings(
    session: Session,
    updates: Updates,
    told: list[_Told],
    spoken: list[tuple[Words, ...]],
    result: StepsResult,
    made: MadeOptimizer,
) -> Iterator[Finding]:
    """One finding for each hypothesis, though several may hold for some parameters."""
    together: dict[tuple[str, str], list[tuple[_Told, Words]]] = {}
    for one, every in zip(told, spoken, strict=True):
        for cause_id, words in zip(one.blame.causes, every, strict=True):
            together.setdefault((cause_id, words.text), []).append((one, words))
    sizes = Counter(w.group for w in updates.parameters.values())
    infos, _ = session.infos()
    for (cause_id, text), members in together.items():
        blame = _joined([one.blame for one, _ in members])
        explanation = blame.explanation
        assert explanation is not None
        where = places(blame, dict(sizes))
        worst = max(blame.names, key=lambda n: result.worst[n][1].ratio)
        comparison = result.worst[worst][1]
        modules = {infos[n].module for n in blame.names if n in infos}
        several = len(explanation.ids) > 1
        words = members[0][1]
        yield Finding(
            "update.parameters",
            Severity.EFFECTIVE,
            Stage.UPDATE,
            next(iter(modules)) if len(modules) == 1 else "",
            f"the optimizer follows another rule for {where}: {text}",
            comparison.ratio if math.isfinite(comparison.ratio) else None,
            min(result.first[n] for n in blame.names),
            evidence=comparison.evidence,
            cause=Cause(
                cause_id,
                words.reference,
                words.port,
                explanation.share,
                explanation.share_interval,
                all(one.proved for one, _ in members),
                () if several else explanation.alternatives,
                f"{text}, for {where}{_interval_words(explanation.known, explanation.values)}",
            ),
            fix=_fix(session, words, _for_whom(blame, sizes), made),
        )


def _fix(session: Session, words: Words, whom: str, made: MadeOptimizer) -> Fix:
    """The edit of the call that makes the optimizer; what to do where there is none."""
    edits: tuple[SourceEdit, ...] = ()
    if words.settings and not whom:
        edits = session.port.ask(Fixes.optimizer_edits, words.settings)
    if edits:
        text = "; ".join(f"{edit.old} → {edit.new}" for edit in edits)
        return Fix(text, edits[0].where, edits)
    return Fix(words.fix + whom, made.line)


def _joined(blames: list[Blame]) -> Blame:
    """Several blames as one, for what they have in common."""
    first = blames[0]
    for other in blames[1:]:
        first = replace(
            first,
            names=first.names + other.names,
            groups=tuple(sorted({*first.groups, *other.groups})),
            silent=first.silent + other.silent,
        )
    return first


def _for_whom(blame: Blame, sizes: Counter[int]) -> str:
    everything = len(blame.names) + len(blame.silent) == sum(sizes.values())
    return "" if everything else f", for {some_names(blame.names)}"


def _interval_words(known: tuple[tuple[float, float], ...], values: tuple[float, ...]) -> str:
    """Only where the data leave a number open by more than a tenth."""
    for (low, high), value in zip(known, values, strict=True):
        if len(values) == 1 and value > 0 and high - low > 0.1 * value:
            return f" (anything from {low:.2g} to {high:.2g} fits)"
    return ""


def _left_out_names(session: Session, findings: list[Finding]) -> dict[str, str]:
    """Reference names of parameters that the port's optimizer does not hold, and the port's."""
    first, _ = session.infos()
    found: dict[str, str] = {}
    for finding in findings:
        for pair in session.pairing.pairs:
            told = any(f" {name}," in finding.message for name in pair.port)
            if told and first[pair.reference[0]].module == finding.module:
                found |= dict.fromkeys(pair.reference, pair.port[0])
    return found


def _agreeing_without_gap(
    session: Session, updates: Updates, proof: Proof, missing: dict[str, str]
) -> set[str] | None:
    """What agrees once the missing parameters are given to groups of their like; None: no trial."""
    added: dict[str, str] = {}
    for name, port_name in missing.items():
        watched = updates.parameters.get(name)
        alike = [
            n
            for n, w in updates.parameters.items()
            if watched is not None and n not in missing and w.rule == watched.rule
        ]
        alike.sort(key=lambda n: updates.parameters[n].group != (watched.group if watched else 0))
        held = session.port_names(alike[:1])
        if held:
            added[port_name] = held[0]
    return proof.agreeing({"add": added}) if added else None


def _rules_without(
    updates: Updates, missing: dict[str, str], consequences: set[str]
) -> dict[str, dict[str, Any]]:
    """The rules of a port that leaves parameters out, and their gradients out of its norm."""
    found: dict[str, dict[str, Any]] = {}
    for name in missing:
        watched = updates.parameters.get(name)
        if watched is not None and watched.rule is not None:
            found[name] = replace(watched.rule, frozen=True).plain()
    for name in consequences:
        rule = updates.parameters[name].rule
        clipping = updates.clipping(updates.part([name])) if rule is not None else None
        if rule is not None and clipping is not None and clipping.at is not None:
            found[name] = replace(rule, clip=clipping.clip, clip_at=clipping.at).plain()
    return found


def _left_out_cause(
    finding: Finding, missing: dict[str, str], proved: set[str], line: str | None
) -> Finding:
    mine = next((n for n, p in missing.items() if f" {p}," in finding.message), None)
    if mine is None:
        return finding
    text = f"the optimizer does not hold {missing[mine]}"
    cause = Cause("optimizer.frozen", "updated", "never updated", proved=mine in proved, text=text)
    fix = Fix(f"give {missing[mine]} to the optimizer", line) if line else finding.fix
    return replace(finding, cause=cause, fix=fix)

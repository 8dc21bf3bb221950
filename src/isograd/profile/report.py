"""What `isograd profile` answers, as a value; `to_data` is the contract's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isograd.profile.against import Against
from isograd.profile.analyse.analysis import Analysis
from isograd.profile.model import Operator, Phase
from isograd.profile.roofline import roofline_data
from isograd.profile.rules.rule import ProfileFinding
from isograd.report.base import Report

SCHEMA = "isograd/profile/1"
#: Operators in JSON; the rest is summed up in one entry.
MOST_OPERATORS = 500


@dataclass(frozen=True)
class PhaseTime:
    """Median seconds per step of a phase, and its share."""

    phase: Phase
    seconds: float
    share: float


@dataclass(frozen=True)
class ProfileReport(Report):
    """An analysis, its findings, and a second run beside it."""

    analysis: Analysis
    findings: tuple[ProfileFinding, ...]
    against: Against | None = None

    @property
    def needs_action(self) -> bool:
        """Whether time could be won: the exit status 1."""
        return any(not finding.is_note for finding in self.findings)

    @property
    def winnable_s(self) -> float:
        """Seconds per step that the greatest finding could win."""
        return max((finding.seconds for finding in self.findings), default=0.0)

    def phases(self) -> tuple[PhaseTime, ...]:
        """Phases that were measured; what no phase holds is `other`."""
        return phase_times(self.analysis)

    def to_data(self) -> dict[str, Any]:
        """The contract's JSON."""
        analysis = self.analysis
        seconds = analysis.breakdown.step_s
        return {
            "schema": SCHEMA,
            "verdict": analysis.limit.value,
            "confidence": analysis.confidence,
            "source": analysis.profile.source,
            "framework": analysis.profile.framework,
            "device": analysis.profile.device,
            "step": {
                "median_s": analysis.step_s,
                "p95_s": float(np.percentile(seconds, 95)) if len(seconds) else None,
                "jitter": analysis.jitter.spread,
                "count": len(seconds),
                "slow": list(analysis.jitter.slow),
                "phases": [
                    {"phase": one.phase.value, "seconds": one.seconds, "share": one.share}
                    for one in self.phases()
                ],
                "limits": {
                    limit.value: analysis.breakdown.of(limit) for limit in analysis.breakdown.known
                },
            },
            "operators": [self._operator(one) for one in analysis.operators[:MOST_OPERATORS]],
            "modules": self._modules(),
            "pipeline": self._pipeline(),
            "communication": self._communication(),
            "what_if": self._what_if(),
            "memory": self._memory(),
            "roofline": roofline_data(analysis),
            "findings": [_finding(finding) for finding in self.findings],
            "against": self._against(),
            "excluded": {} if analysis.profile.host is None else analysis.profile.host.excluded,
            "files": list(analysis.profile.files),
            "refused": [
                {"file": one.file, "reason": one.reason} for one in analysis.profile.refused
            ],
            "notes": list(analysis.notes),
        }

    def _what_if(self) -> dict[str, Any] | None:
        analysis = self.analysis
        if analysis.model is None:
            return None
        path = analysis.model.path_shares()
        return {
            "critical_path": {role.value: share for role, share in path.items()},
            "changes": [{"change": one.name, "step_s": one.step_s} for one in analysis.answers],
        }

    def _memory(self) -> dict[str, Any]:
        peak = self.analysis.memory
        if peak is None:
            return {"peak_bytes": None}
        module, phase = peak.at
        return {
            "peak_bytes": peak.peak_bytes,
            "device": peak.device,
            "at": {"module": module, "phase": phase.value},
            "before_bytes": peak.before_bytes,
            "held": peak.held,
            "modules": [
                {
                    "module": one.module,
                    "phase": one.phase.value,
                    "operator": one.operator or None,
                    "bytes": one.size_bytes,
                    "share": one.size_bytes / peak.peak_bytes,
                }
                for one in peak.shares
            ],
        }

    def _operator(self, one: Operator) -> dict[str, Any]:
        return {
            "operator": one.name,
            "shapes": one.shapes,
            "dtypes": one.dtypes,
            "calls": one.calls,
            "self_s": one.self_s,
            "share": self.analysis.share(one.self_s),
            "spread": one.spread,
            "module": one.module,
            "where": one.where,
        }

    def _modules(self) -> list[dict[str, Any]]:
        if self.against is None:
            return [
                {
                    "module": one.name,
                    "forward_s": one.forward_s,
                    "backward_s": one.backward_s,
                    "against": None,
                }
                for one in self.analysis.profile.modules
            ]
        return [
            {
                "module": side.name,
                "forward_s": side.forward_s,
                "backward_s": side.backward_s,
                "against": None
                if side.other_name is None
                else {"module": side.other_name, "seconds": side.other_s, "ratio": side.ratio},
            }
            for side in self.against.modules
        ]

    def _pipeline(self) -> dict[str, Any] | None:
        answer, loader = self.analysis.pipeline, self.analysis.profile.loader
        if answer is None and loader is None:
            return None
        bottleneck = None if answer is None else answer.bottleneck
        operators = [
            {
                "name": queue.name,
                "queue_fill": queue.fill,
                "rate": queue.rate,
                "workers": queue.workers,
                "bottleneck": queue.number == bottleneck and queue.number >= 0,
            }
            for queue in (answer.queues if answer is not None else ())
        ]
        found: dict[str, Any] = {"operators": operators}
        if answer is not None:
            found["reason"], found["fine"] = answer.reason, answer.is_fine
        if loader is not None:
            found["loader"] = {
                "workers": loader.workers,
                "batch_size": loader.batch_size,
                "prefetch": loader.prefetch,
                "sample_s": loader.sample_s,
                "ready": float(np.mean(loader.ready)) if loader.ready.size else None,
            }
        return found

    def _communication(self) -> dict[str, Any] | None:
        answer = self.analysis.communication
        if answer is None:
            return None
        found: dict[str, Any] = {
            "segments": None,
            "tail_s": None,
            "today_tail_s": None,
            "model": None,
            "exposed_s": answer.exposed_s,
        }
        if answer.segments is not None:
            one = answer.segments
            found |= {
                "segments": list(one.segments.indices),
                "tail_s": one.tail_s,
                "today_tail_s": one.today_tail_s,
                "model": {"a_s": one.model.a_s, "b_s_per_byte": one.model.b_s_per_byte},
            }
        return found

    def _against(self) -> dict[str, Any] | None:
        other = self.against
        if other is None:
            return None
        return {
            "source": other.other.profile.source,
            "step_s": other.other.step_s,
            "ratio": other.ratio,
            "difference_s": other.difference_s,
            "noise_s": other.noise_s,
            "verdict": "within the noise"
            if other.faster is None
            else ("faster" if other.faster else "slower"),
            "unpaired_modules": list(other.unpaired),
            "only_here": [{"operator": n, "seconds": s} for n, s in other.only_here],
            "only_there": [{"operator": n, "seconds": s} for n, s in other.only_there],
            "notes": list(other.notes),
        }


def phase_times(analysis: Analysis) -> tuple[PhaseTime, ...]:
    """Median seconds per step of each phase that was measured, and of what no phase holds."""
    steps = analysis.steps
    if not len(steps):
        return ()
    found, known = [], np.zeros(len(steps))
    for phase in Phase:
        seconds = steps.phase(phase)
        if phase is not Phase.OTHER and not np.isnan(seconds).all():
            value = float(np.median(np.nan_to_num(seconds)))
            if value > 0:
                found.append(PhaseTime(phase, value, analysis.share(value)))
            known += np.nan_to_num(seconds)
    rest = float(np.median(np.maximum(steps.seconds - known, 0.0)))
    if rest > 0:
        found.append(PhaseTime(Phase.OTHER, rest, analysis.share(rest)))
    return tuple(found)


def _finding(finding: ProfileFinding) -> dict[str, Any]:
    predicted, tried = finding.what_if, finding.tried
    return {
        "code": finding.code,
        "seconds": finding.seconds,
        "share": finding.share,
        "message": finding.message,
        "advice": finding.advice,
        "what_if": None
        if predicted is None
        else {"step_s": predicted.step_s, "interval": list(predicted.interval)},
        "where": finding.where,
        "culprit": finding.culprit or None,
        "module": finding.module,
        "tried": None
        if tried is None
        else {
            "setting": tried.setting,
            "step_s": tried.step_s,
            "equivalent": tried.equivalent,
        },
    }

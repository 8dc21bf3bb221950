"""What a verification of one builder said: frozen values, which a journal keeps as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """How far a builder came: the first thing that went wrong, or that nothing did."""

    EQUIVALENT = "equivalent"
    DIVERGENT = "divergent"
    INCOMPLETE = "incomplete"
    NO_ORIGINAL = "the original does not build"  # a value of the JSON
    NO_INPUTS = "its inputs are not known"
    NO_IMPORT = "the port does not import"
    NO_BUILD = "the port does not build"
    FAILED = "failed while it ran"


@dataclass(frozen=True)
class SeedResult:
    """One run of the ladder.

    paired: every parameter and buffer has a partner.  by_name: all were paired by their names,
    or have the same (constants that are no Parameters in the port are paired by their values).
    divergence: stage, module and ratio of the first divergence, in words; empty where there is
    none.  findings, gaps: in words.  stages: verdict by stage.  modules: those that the static
    graph does not take as they are, and what is to be done; every other module compiles.
    """

    seed: int
    outcome: Outcome
    paired: bool = False
    by_name: bool = False
    divergence: str = ""
    findings: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    elapsed_s: float = 0.0
    modules: tuple[tuple[str, str], ...] = ()

    @property
    def compiled(self) -> str:
        """What the static graph makes of the port, in words; empty where it was not asked."""
        verdict = dict(self.stages).get("compiled", "skipped")
        if verdict == "skipped":
            return ""
        if self.modules:
            return "; ".join(f"{module or 'the network'} {words}" for module, words in self.modules)
        return "every module compiles" if verdict == "equivalent" else f"compiled: {verdict}"


@dataclass(frozen=True)
class BuilderResult:
    """One builder over its seeds; inputs: as on the command line.

    files: the port's files that were imported for it.
    """

    builder: str
    inputs: tuple[str, ...]
    seeds: tuple[SeedResult, ...]
    files: tuple[str, ...] = ()
    is_remembered: bool = False

    @property
    def outcome(self) -> Outcome:
        """The worst of its seeds."""
        return max((s.outcome for s in self.seeds), key=list(Outcome).index)

    @property
    def is_equivalent(self) -> bool:
        """Whether nothing about the builder needs a person."""
        return self.outcome is Outcome.EQUIVALENT

    @property
    def imported(self) -> bool:
        """Whether the port was imported, without torch."""
        return self.outcome not in (Outcome.NO_IMPORT, Outcome.NO_ORIGINAL, Outcome.NO_INPUTS)

    @property
    def built(self) -> bool:
        """Whether the port was built."""
        return self.imported and self.outcome is not Outcome.NO_BUILD

    @property
    def paired(self) -> bool:
        """Whether all weights of all seeds found a partner."""
        return all(seed.paired for seed in self.seeds)

    @property
    def first_problem(self) -> str:
        """The first divergence, gap or error, in words; empty where nothing is wrong."""
        for seed in self.seeds:
            for said in (seed.problem, seed.divergence, *seed.gaps[:1]):
                if said:
                    return said
        return ""

    @property
    def compiled(self) -> str:
        """What the static graph makes of the port, in words; empty where it was not asked."""
        return next((seed.compiled for seed in self.seeds if seed.compiled), "")

    def as_json(self) -> dict[str, Any]:
        """Plain values for a journal or a report."""
        value = dataclasses.asdict(self)
        value["outcome"] = self.outcome.value
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BuilderResult:
        """Back from `as_json`; raises KeyError, TypeError or ValueError for anything else."""
        seeds = tuple(_seed(part) for part in value["seeds"])
        return cls(str(value["builder"]), tuple(value["inputs"]), seeds, tuple(value["files"]))


def _seed(value: Mapping[str, Any]) -> SeedResult:
    known = {**value, "outcome": Outcome(value["outcome"])}
    for key in ("findings", "gaps"):
        known[key] = tuple(known[key])
    for key in ("stages", "modules"):
        known[key] = tuple((str(a), str(b)) for a, b in known[key])
    return SeedResult(**known)

"""Names the cause of a port's error in a subject: one call alone, or the loss alone.

Arrays in, an explanation out: the subject is anything that runs under trials and shows its
functions (in a worker, `isograd.worker.subject`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Protocol

from isograd.diagnose.decide import Diagnosis, decide, decide_quietly
from isograd.diagnose.experiment import QUIET_VARIANTS, Experiment
from isograd.diagnose.hypothesis import Context, FunctionHypothesis, Surroundings
from isograd.diagnose.library import all_hypotheses
from isograd.frameworks.base import FLOAT64, Arithmetic, FunctionSite, Tensors, Trial

#: Trials of one subject; a unit with thousands of functions is cut here.
_MOST_TRIALS = 600

#: From this rank on a number fits much that is not its own: below the noise it tells nothing.
_CATCH_ALL = 7


class Subject(Protocol):
    """What is diagnosed."""

    def run(self, trials: Sequence[Trial], arithmetic: Arithmetic, backward: bool) -> Tensors:
        """Its tensors under trials; with backward their gradients too.

        returns: the shapes of its tensors; float64 for the floating ones in that arithmetic, else
        their own dtypes.
        """
        ...

    def sites(
        self, trials: Sequence[Trial] = (), with_values: bool = False
    ) -> tuple[FunctionSite, ...]:
        """The functions that it calls, under trials."""
        ...


def diagnose(
    subject: Subject,
    port: Tensors,
    wanted: tuple[str, ...],
    around: Surroundings,
    fixed: tuple[Trial, ...],
    threshold: float,
    limit_s: float,
    likely: tuple[str, ...] = (),
) -> Diagnosis:
    """Try every hypothesis that applies; name the cause or abstain.

    around: what is known of its surroundings.  likely: hypotheses that explained other modules of
    this port; where they explain this one too, nothing else is tried.
    port: by name, the shapes of the subject's tensors, any dtypes.
    """
    surroundings = Context(subject.sites(), **asdict(around))
    library = all_hypotheses()
    kind = _kind_of(wanted)
    chosen = {name: one for name, one in library.items() if _kind(one) in kind}
    trials = list(proposals(chosen, surroundings))[:_MOST_TRIALS]
    experiment = Experiment(subject.run, port, wanted, library, threshold, limit_s, fixed)
    experiment.origins = {site.place: site.origin for site in surroundings.sites}
    expected = [t for t in trials if t.hypothesis in likely]
    if expected:
        outcomes = experiment.try_all(expected, combine=False)
        found = decide(outcomes, library, surroundings, threshold, experiment.ratio_before)
        if found.causes:
            return found
    outcomes = experiment.try_all(trials, combine=True)
    return decide(outcomes, library, surroundings, threshold, experiment.ratio_before)


def diagnose_quietly(
    subject: Subject,
    port: Tensors,
    wanted: tuple[str, ...],
    around: Surroundings,
    threshold: float,
    limit_s: float,
) -> Diagnosis:
    """Look for small changes within the noise, by projection.

    port: by name, the shapes of the subject's tensors, any dtypes.
    """
    surroundings = Context(subject.sites(), **asdict(around))
    library = all_hypotheses()
    quiet = {
        name: one
        for name, one in library.items()
        if (one.quiet or (one.number is not None and one.rank < _CATCH_ALL))
        and _kind(one) == "forward"
    }
    trials = list(proposals(quiet, surroundings))[:_MOST_TRIALS]
    if not trials:
        return Diagnosis((), (), 0.0, None, {})
    experiment = Experiment(
        subject.run,
        port,
        wanted,
        library,
        threshold,
        limit_s,
        variants=QUIET_VARIANTS,
        below_noise=True,
    )
    outcomes = experiment.try_quietly(trials)
    return decide_quietly(outcomes, library, surroundings, experiment.ratio_before)


def projected(
    subject: Subject, port: Tensors, wanted: tuple[str, ...], trials: tuple[Trial, ...]
) -> tuple[float, float]:
    """alpha of trials in the port's error, and its deviation.

    port: by name, the shapes of the subject's tensors, any dtypes.
    """
    experiment = Experiment(subject.run, port, wanted, all_hypotheses(), 0.0, below_noise=True)
    found = subject.run(trials, FLOAT64, False)
    return experiment.projection({k: found[k].values for k in wanted if k in found})


def proposals(hypotheses: dict[str, FunctionHypothesis], context: Context) -> Iterator[Trial]:
    """Every hypothesis at every place where it applies, with its values."""
    by_function: dict[str, list[FunctionHypothesis]] = {}
    for one in hypotheses.values():
        for function in one.functions:
            by_function.setdefault(function, []).append(one)
    seen = set()
    for site in context.sites:
        if site.place in seen or (context.without and _is_in(site.place.module, context.without)):
            continue
        seen.add(site.place)
        for one in [*by_function.get(site.place.function, ()), *by_function.get("*", ())]:
            for values in one.propose(site, context):
                yield Trial(one.name, site.place, dict(values))


def _is_in(module: str, container: str) -> bool:
    return module == container or module.startswith(f"{container}.")


def _kind(one: FunctionHypothesis) -> str:
    return "backward" if one.backward else "statistics" if one.statistics else "forward"


def _kind_of(wanted: tuple[str, ...]) -> tuple[str, ...]:
    if all(key.startswith("gradient.") or key == "loss" for key in wanted):
        return ("backward", "forward")
    if all(key.startswith("buffer.") for key in wanted):
        return ("statistics",)
    return ("forward",)

"""What became of random networks: rows in a file, and the table that they make."""

from __future__ import annotations

import collections
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Chance that a true rate above the bound shows as few alarms as were seen.
_DOUBT = 0.05


@dataclass
class Outcome:
    """What one port of one network came to."""

    seed: int
    port: str
    verify_seed: int
    verdict: str
    elapsed_s: float
    processor_s: float = 0.0
    detail: str = ""
    apis: list[str] = field(default_factory=list)
    commit: str = ""

    @property
    def is_alarm(self) -> bool:
        return self.verdict not in ("equivalent", "marked")


def read_rows(path: Path) -> list[Outcome]:
    """The outcomes that a file holds, the oldest first; none where there is no file."""
    if not path.exists():
        return []
    return [Outcome(**json.loads(line)) for line in path.read_text().splitlines() if line]


def newest(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """The last outcome of each network, port and seed."""
    return list({(o.seed, o.port, o.verify_seed): o for o in outcomes}.values())


def bound(alarms: int, count: int, doubt: float = _DOUBT) -> float:
    """The highest rate of alarms that this count does not rule out (Clopper and Pearson, 1934).

    The solution of P(X ≤ alarms) = doubt for X binomial over count draws, by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        terms = (
            math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(alarms + 1)
        )
        low, high = (rate, high) if sum(terms) > doubt else (low, rate)
    return high


def table(outcomes: Sequence[Outcome]) -> str:
    """One row for each kind of port and one for all, and what the counts allow to say."""
    verified = [o for o in outcomes if o.verdict != "marked"]
    head = "ports networks seeds verified marked alarms errors median_s median_processor_s".split()
    head = [word.replace("_s", ", s").replace("_", " ") for word in head]
    head.insert(6, "wrong causes")
    rows = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for port in ("convert", "native", ""):
        part = [o for o in outcomes if port in ("", o.port)]
        if part:
            rows.append(_row(port or "all", part))
    if verified:
        alarms = sum(o.is_alarm for o in verified)
        networks = len({o.seed for o in verified})
        failed = len({o.seed for o in verified if o.is_alarm})
        rows.append(
            f"\nThe rate of alarms is below {bound(alarms, len(verified)):.2%} a port and "
            f"{bound(failed, networks):.2%} a network at 95 %; the stage compiled is off. "
            f"Commits: {', '.join(sorted({o.commit for o in verified}))}."
        )
    return "\n".join(rows)


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    counts = collections.Counter(o.verdict for o in outcomes)
    verified = [o for o in outcomes if o.verdict != "marked"]
    wrong = sum("[" in o.detail for o in outcomes if o.verdict == "divergent")
    medians = [
        f"{statistics.median(numbers):.1f}" if numbers else ""
        for numbers in ([o.elapsed_s for o in verified], [o.processor_s for o in verified])
    ]
    cells = [
        name,
        len({o.seed for o in outcomes}),
        len({o.verify_seed for o in outcomes}),
        len(verified),
        counts["marked"],
        counts["divergent"] + counts["incomplete"],
        wrong,
        counts["error"] + counts["convert failed"],
        *medians,
    ]
    return f"| {' | '.join(map(str, cells))} |"

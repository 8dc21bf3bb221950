"""`--try`: runs the user's own script with one setting changed at a time, and measures.

Every attempt is a process of its own. Attempts are interleaved in two rounds, so that a busy
machine is busy for all of them; of each the faster round counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isograd.errors import ProfileError
from isograd.profile.record.variants import BASELINE, VARIANTS, Variant
from isograd.profile.rules.rule import CLAIM_SHARE, ProfileFinding, Tried, milliseconds

ROUNDS = 2
STEPS = 12
LIMIT_S = 600.0


@dataclass(frozen=True)
class Attempt:
    """Median plain step, peak memory of the process, and the losses of the steps.

    losses: where they cannot be seen, the root mean squares of the trained parameters at the end.
    """

    step_s: float
    peak_bytes: int
    losses: tuple[float, ...]


def try_settings(
    script: Path, arguments: Sequence[str], framework: str
) -> tuple[ProfileFinding, ...]:
    """What each setting of the framework would change; raise ProfileError where nothing runs."""
    known = [variant for variant in VARIANTS if variant.framework == framework]
    found: dict[str, list[Attempt]] = {}
    failed: dict[str, str] = {}
    for _ in range(ROUNDS):
        for variant in (BASELINE, *known):
            if variant.name in failed:
                continue
            attempt = _attempt(script, arguments, variant)
            if isinstance(attempt, Attempt):
                found.setdefault(variant.name, []).append(attempt)
            else:
                failed[variant.name] = attempt
    base = found.get(BASELINE.name)
    if not base:
        raise ProfileError(
            f"{script} could not be run again for --try: {failed[BASELINE.name]}",
            "Run it alone, twice in a row.",
        )
    return tuple(
        _judged(variant, base, found[variant.name])
        if variant.name in found
        else _refused(variant, failed[variant.name])
        for variant in known
    )


def _attempt(script: Path, arguments: Sequence[str], variant: Variant) -> Attempt | str:
    """One run of the script in a process of its own, or why it did not end well."""
    with tempfile.TemporaryDirectory(prefix="isograd-try-") as folder:
        answer = Path(folder) / "answer.json"
        call = [sys.executable, "-m", "isograd.profile.record.attempt", variant.name]
        call += [str(answer), str(STEPS), str(script), *arguments]
        try:
            done = subprocess.run(call, capture_output=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"it did not end within {LIMIT_S:.0f} s"
        if done.returncode or not answer.is_file():
            return _reason(done.stderr.decode(errors="replace"), done.returncode)
        content = json.loads(answer.read_text(encoding="utf-8"))
    return Attempt(content["step_s"], content["peak_bytes"], tuple(content["losses"]))


def _reason(text: str, status: int) -> str:
    """The last line that a process wrote, else how it ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"the process ended with {status}"


def _refused(variant: Variant, reason: str) -> ProfileFinding:
    return ProfileFinding(
        code=f"try.{variant.name}",
        seconds=0.0,
        share=0.0,
        message=f"{variant.setting} could not be tried: {reason}",
        advice="Leave it as it is.",
        culprit=variant.name,
        is_note=True,
    )


def _judged(variant: Variant, base: Sequence[Attempt], tried: Sequence[Attempt]) -> ProfileFinding:
    """A finding where the setting is faster by more than the rounds differ."""
    before = min(attempt.step_s for attempt in base)
    after = min(attempt.step_s for attempt in tried)
    noise = max(attempt.step_s for attempt in base) - before
    won = before - after
    is_faster = won > max(noise, CLAIM_SHARE * before)
    same = equivalent(base, tried, variant.tolerance)
    memory = (tried[0].peak_bytes - base[0].peak_bytes) / 1e6
    words = {True: "the training is the same", False: "the training differs", None: "not compared"}
    message = (
        f"{variant.setting} takes {milliseconds(after)} per step instead of "
        f"{milliseconds(before)}, {memory:+.0f} MB; {words[same]}."
    )
    return ProfileFinding(
        code=f"try.{variant.name}",
        seconds=max(won, 0.0) if is_faster else 0.0,
        share=max(won, 0.0) / before if is_faster else 0.0,
        message=message,
        advice=variant.setting if is_faster and same is not False else "Leave it as it is.",
        culprit=variant.name,
        tried=Tried(after, same, variant.setting),
        is_note=not is_faster or same is False,
    )


def equivalent(base: Sequence[Attempt], tried: Sequence[Attempt], tolerance: float) -> bool | None:
    """Whether the losses agree; None where the script's own repetition does not."""
    first, again = base[0].losses, base[-1].losses
    if not first or first != again or not tried[0].losses:
        return None
    count = min(len(first), len(tried[0].losses))
    return bool(np.allclose(tried[0].losses[:count], first[:count], rtol=tolerance, atol=1e-7))

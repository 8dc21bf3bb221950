"""One attempt of `--try`, a process: variant, answer file, steps, script, its arguments."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the script with one setting changed and write what was measured."""
    from isograd.errors import IsogradError
    from isograd.profile.read.open import open_profile
    from isograd.profile.record.script import record_script
    from isograd.profile.record.variants import BASELINE, VARIANTS
    from isograd.runs.reader import Run

    name, answer, steps, script, *rest = arguments
    variant = next(one for one in (BASELINE, *VARIANTS) if one.name == name)
    folder = Path(answer).with_name("run")

    try:
        record_script(Path(script), rest, folder, int(steps), on_import=lambda _: variant.apply())
    except IsogradError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    profile = open_profile(folder / "profile.json")
    assert profile.host is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    scalars = Run(folder).scalars
    losses = scalars.series("loss")[1].tolist() if "loss" in scalars.columns else []
    content = {"step_s": profile.host.plain_step_s, "peak_bytes": peak, "losses": losses}
    Path(answer).write_text(json.dumps(content), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""One attempt of `--try`, a process: variant, answer file, steps, script, its arguments."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np


def _trained(network: Any) -> Any:
    if hasattr(network, "trainable_params"):
        return network.trainable_params()
    return [parameter for parameter in network.parameters() if parameter.requires_grad]


def norms(network: Any) -> list[float]:
    """Root mean square of each trained parameter, for trainings whose losses nobody can see."""
    found = []
    for parameter in _trained(network):
        value = parameter.asnumpy() if hasattr(parameter, "asnumpy") else parameter.detach().numpy()
        found.append(float(np.sqrt(np.mean(np.square(value.astype(np.float64))))))
    return found


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
        network = record_script(
            Path(script), rest, folder, int(steps), on_import=lambda _: variant.apply()
        )
    except IsogradError as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        os._exit(2)  # a framework's threads may still run, and complain when the interpreter ends
    profile = open_profile(folder / "profile.json")
    assert profile.host is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    scalars = Run(folder).scalars
    losses = scalars.series("loss")[1].tolist() if "loss" in scalars.columns else norms(network)
    content = {"step_s": profile.host.plain_step_s, "peak_bytes": peak, "losses": losses}
    Path(answer).write_text(json.dumps(content), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

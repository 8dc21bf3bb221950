"""What simple rules find in the same runs: losses, outputs and activations side by side.

The tensors are those that `isograd verify --keep` writes, so the rules get what they would not have
of their own: equal weights, moved away from ones and zeros, equal inputs, and no chance. Layers are
paired by isograd's own list of modules. A rule answers None where it has nothing to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from isograd.errors import IsogradError
from isograd.recording.reader import RecordedStep, Recording

RULES = (
    "first loss within 1 ‰",
    "output's cosine ≥ 0.999",
    "allclose(1e-3, 1e-5), output",
    "allclose(1e-3, 1e-5), every layer",
    "assert_close's defaults, every layer",
)
LOSS_PERMILLE = 1.0
COSINE = 0.999
LOOSE = (1e-3, 1e-5)  # rtol and atol
STRICT = (1.3e-6, 1e-5)  # torch.testing.assert_close for float32

Pair = tuple[np.ndarray, np.ndarray]


def judge(report: dict[str, Any], kept: Path) -> dict[str, bool | None]:
    """Tell for every rule whether it raises an alarm on this run."""
    output: list[Pair] = []
    layers: list[Pair] = []
    try:
        for module, reference, port in _pairs(report, kept):
            layers.append((reference, port))
            if module == "":
                output.append((reference, port))
    except (IsogradError, OSError):
        output, layers = [], []
    alarms = (
        _loss(report),
        _any(_turned(pair) for pair in output),
        _any(_differs(pair, LOOSE) for pair in output),
        _any(_differs(pair, LOOSE) for pair in layers),
        _any(_differs(pair, STRICT) for pair in layers),
    )
    return dict(zip(RULES, alarms, strict=True))


def _loss(report: dict[str, Any]) -> bool | None:
    """Compare the first losses; False where isograd could not train, None without a loss."""
    losses = report.get("losses") or {}
    if not losses.get("reference") or not losses.get("port"):
        return None
    reference, port = losses["reference"][0], losses["port"][0]
    if reference is None or port is None:
        return None
    return not abs(port - reference) <= LOSS_PERMILLE / 1000.0 * abs(reference)


def _any(answers: Iterator[bool]) -> bool | None:
    known = list(answers)
    return any(known) if known else None


def _turned(pair: Pair) -> bool:
    """Tell whether the cosine is too small; another shape is no question of an angle."""
    reference, port = (np.ravel(values).astype(np.float64) for values in pair)
    if reference.shape != port.shape:
        return True
    scale = np.linalg.norm(reference) * np.linalg.norm(port)
    if scale == 0.0:
        return bool(np.any(reference != port))
    return not float(reference @ port) / scale >= COSINE


def _differs(pair: Pair, tolerance: tuple[float, float]) -> bool:
    reference, port = pair
    if reference.shape != port.shape:
        return True
    rtol, atol = tolerance
    return not np.allclose(port, reference, rtol=rtol, atol=atol, equal_nan=True)


def _pairs(report: dict[str, Any], kept: Path) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the outputs of every paired module in every recorded pass.

    Layers whose results have other shapes are left out, the output is not: a rule by layers needs
    layers that correspond.
    """
    named = {row["module"]: row["port_module"] for row in report.get("modules", ())}
    named.setdefault("", "")
    reference, port = Recording(kept / "reference"), Recording(kept / "port")
    for step in sorted(set(reference.step_numbers) & set(port.step_numbers)):
        ours, theirs = reference.step(step), port.step(step)
        for module, counterpart in named.items():
            if counterpart is None:
                continue
            first, second = _outputs(ours, module), _outputs(theirs, counterpart)
            if len(first) != len(second):
                continue
            for left, right in zip(first, second, strict=True):
                if left.shape == right.shape or module == "":
                    yield module, left, right


def _outputs(step: RecordedStep, module: str) -> list[np.ndarray]:
    return [
        step.tensor(slot.value).values
        for call in step.calls
        if call.kind == "module" and call.name == module
        for slot in call.outputs
    ]

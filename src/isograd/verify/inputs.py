"""The tensors that a case feeds in: drawn by numpy, so that both sides get the same numbers."""

from __future__ import annotations

import numpy as np

from isograd.errors import CaseError
from isograd.tensors import TensorValue, bfloat16_from_bits, bfloat16_to_bits
from isograd.verify.case import Case, TensorSpec


def make_inputs(case: Case, seed: int, step: int = 0) -> dict[str, TensorValue]:
    """The model's arguments of one step, keyed by position ("0", "1"…) or by name."""
    result: dict[str, TensorValue] = {}
    position = 0
    for number, spec in enumerate(case.inputs):
        key = spec.name
        if key is None:
            key, position = str(position), position + 1
        result[key] = make_tensor(spec, (seed, step, number, 0))
    return result


def make_targets(case: Case, seed: int, step: int = 0) -> list[TensorValue]:
    """The loss's arguments after the output, of one step."""
    return [make_tensor(spec, (seed, step, i, 1)) for i, spec in enumerate(case.targets)]


def make_tensor(spec: TensorSpec, stream: tuple[int, int, int, int]) -> TensorValue:
    """Draw or read one tensor; the stream makes seeds, steps and positions independent."""
    if spec.file is not None:
        return _read(spec)
    generator = np.random.default_rng((spec.seed, *stream))
    low, high = spec.low, spec.high
    if spec.fill == "normal":
        values = generator.standard_normal(spec.shape)
    elif spec.fill == "uniform":
        values = generator.uniform(
            0.0 if low is None else low, 1.0 if high is None else high, spec.shape
        )
    elif spec.fill == "integers":
        assert low is not None
        assert high is not None
        values = generator.integers(int(low), int(high), spec.shape).astype(np.float64)
    else:
        values = np.full(spec.shape, 1.0 if spec.fill == "ones" else 0.0)
    if spec.dtype == "bfloat16":
        bits = bfloat16_to_bits(values.astype(np.float32))
        return TensorValue(bfloat16_from_bits(bits), "bfloat16")
    if spec.dtype.startswith("complex") and spec.fill == "normal":
        values = values + 1j * generator.standard_normal(spec.shape)
    return TensorValue(values.astype(spec.dtype), spec.dtype)


def _read(spec: TensorSpec) -> TensorValue:
    assert spec.file is not None
    try:
        values = np.load(spec.file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise CaseError(
            f"{spec.file} is not a readable .npy file ({error})",
            "Save the tensor with numpy.save, without pickled objects.",
        ) from None
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiubc":
        raise CaseError(f"{spec.file} does not hold one tensor of numbers", "Use one .npy array.")
    return TensorValue(values, str(values.dtype))

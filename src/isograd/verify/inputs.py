"""What a case feeds in, drawn by numpy or returned by a callable: both sides get the same numbers.

`source_of` is the one place that decides where a case's inputs and targets come from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from isograd.data.feed import Feed, is_feed
from isograd.errors import CaseError
from isograd.tensors import Array, TensorValue, bfloat16_from_bits, bfloat16_to_bits
from isograd.verify.arguments import Argument, ContainerSpec, PlainSpec, TensorSpec
from isograd.verify.case import Case
from isograd.worker.host import Worker
from isograd.worker.protocols import Networks

#: A tensor, a plain value, or lists, tuples and dictionaries of these.
Nested = Any


class InputSource(Protocol):
    """Where the networks' arguments and the losses' targets of a step come from.

    Asked again for the same step, it answers the same.
    """

    def inputs(self, step: int) -> dict[str, Nested]:
        """The model's arguments, keyed by position ("0", "1"…) or by name."""
        ...

    def targets(self, step: int) -> list[Nested]:
        """The loss's arguments after the output."""
        ...


def source_of(case: Case, seed: int, reference: Worker) -> InputSource:
    """Where this case's inputs come from; its callables run in the reference's worker."""
    drawn = Drawn(case, seed)
    if case.inputs_from is None and case.targets_from is None:
        return drawn
    if case.inputs_from is not None and is_feed(_beside(case, case.inputs_from)):
        return Stored(case, drawn)
    return Called(case, seed, reference, drawn)


class Drawn:
    """Inputs and targets by `[[inputs]]` and `[[targets]]`."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case = case
        self._seed = seed

    def inputs(self, step: int) -> dict[str, Nested]:
        """The model's arguments of one step."""
        return make_inputs(self._case, self._seed, step)

    def targets(self, step: int) -> list[Nested]:
        """The loss's arguments after the output, of one step."""
        return make_targets(self._case, self._seed, step)


class Called:
    """Inputs or targets that a callable of the user's returns; each step is asked for once."""

    def __init__(self, case: Case, seed: int, worker: Worker, drawn: Drawn) -> None:
        self._case = case
        self._seed = seed
        self._worker = worker
        self._drawn = drawn
        self._kept: dict[tuple[str, int], tuple[list[Nested], dict[str, Nested]]] = {}

    def inputs(self, step: int) -> dict[str, Nested]:
        """The model's arguments of one step."""
        if self._case.inputs_from is None:
            return self._drawn.inputs(step)
        positional, keywords = self._called("inputs", self._case.inputs_from, step)
        return {**{str(i): value for i, value in enumerate(positional)}, **keywords}

    def targets(self, step: int) -> list[Nested]:
        """The loss's arguments after the output, of one step."""
        if self._case.targets_from is None:
            return self._drawn.targets(step)
        return self._called("targets", self._case.targets_from, step)[0]

    def _called(self, key: str, name: str, step: int) -> tuple[list[Nested], dict[str, Nested]]:
        if (key, step) not in self._kept:
            folder = self._case.reference.folder
            self._kept[key, step] = self._worker.ask(
                Networks.batch, key, name, folder, self._seed, step
            )
        return self._kept[key, step]


class Stored:
    """Batches that `isograd data -o FOLDER --batches N` stored, one per step and then anew.

    Their fields are the model's arguments in order; where the targets name the same folder, the
    last field is the target.
    """

    def __init__(self, case: Case, drawn: Drawn) -> None:
        assert case.inputs_from is not None
        self._feed = Feed(_beside(case, case.inputs_from))
        self._drawn = drawn
        self._has_targets = case.targets_from is not None
        if self._has_targets and case.targets_from != case.inputs_from:
            raise CaseError(
                f"{case.path}: inputs name the stored batches {case.inputs_from!r}, targets "
                f"{case.targets_from!r}",
                "Name the same folder in both: its last field is the target.",
            )

    def _fields(self, step: int) -> list[TensorValue]:
        arrays = self._feed.batch(step % len(self._feed))
        return [TensorValue(array, str(array.dtype)) for array in arrays]

    def inputs(self, step: int) -> dict[str, Nested]:
        """The model's arguments of one step."""
        fields = self._fields(step)
        count = len(fields) - (1 if self._has_targets else 0)
        return {str(position): value for position, value in enumerate(fields[:count])}

    def targets(self, step: int) -> list[Nested]:
        """The loss's arguments after the output, of one step."""
        return [self._fields(step)[-1]] if self._has_targets else self._drawn.targets(step)


def _beside(case: Case, folder: str) -> Path:
    """A path of the case, relative to its file."""
    return case.path.resolve().parent / folder


def make_inputs(case: Case, seed: int, step: int = 0) -> dict[str, Nested]:
    """The model's arguments of one step, keyed by position ("0", "1"…) or by name."""
    result: dict[str, Nested] = {}
    position = 0
    for number, spec in enumerate(case.inputs):
        key = spec.name
        if key is None:
            key, position = str(position), position + 1
        result[key] = make_argument(spec, (seed, step, number, 0))
    return result


def make_targets(case: Case, seed: int, step: int = 0) -> list[Nested]:
    """The loss's arguments after the output, of one step."""
    return [make_argument(spec, (seed, step, i, 1)) for i, spec in enumerate(case.targets)]


def make_argument(spec: Argument, stream: tuple[int, ...]) -> Nested:
    """Draw, read or take one argument; the stream makes seeds, steps and positions independent."""
    if isinstance(spec, PlainSpec):
        return spec.value
    if isinstance(spec, ContainerSpec):
        parts = [make_argument(part, (*stream, i)) for i, part in enumerate(spec.parts)]
        if spec.kind == "dict":
            return dict(zip(spec.keys, parts, strict=True))
        return tuple(parts) if spec.kind == "tuple" else parts
    return make_tensor(spec, stream)


def make_tensor(spec: TensorSpec, stream: tuple[int, ...]) -> TensorValue:
    """Draw or read one tensor, of the shape and dtype of its specification."""
    if spec.file is not None:
        return _read(spec)
    generator = np.random.default_rng((spec.seed, *stream))
    values = _drawn(spec, generator)
    if spec.dtype == "bfloat16":
        bits = bfloat16_to_bits(values.astype(np.float32))
        return TensorValue(bfloat16_from_bits(bits), "bfloat16")
    if spec.dtype.startswith("complex") and spec.fill == "normal":
        values = np.asarray(values, np.float64) + 1j * generator.standard_normal(spec.shape)
    return TensorValue(values.astype(spec.dtype), spec.dtype)


def _drawn(spec: TensorSpec, generator: np.random.Generator) -> Array:
    low, high = spec.low, spec.high
    if spec.fill == "normal":
        return np.asarray(generator.standard_normal(spec.shape))
    if spec.fill == "uniform":
        bounds = 0.0 if low is None else low, 1.0 if high is None else high
        return np.asarray(generator.uniform(*bounds, spec.shape))
    if spec.fill == "integers":
        assert low is not None
        assert high is not None
        return np.asarray(generator.integers(int(low), int(high), spec.shape), np.float64)
    if spec.fill == "padding_mask":
        return _padding_mask(spec, generator)
    return np.full(spec.shape, 1.0 if spec.fill == "ones" else 0.0)


def _padding_mask(spec: TensorSpec, generator: np.random.Generator) -> Array:
    """A valid prefix in every row along the last axis.

    Lengths are drawn from half the axis up; the first row of several is full and the last is not,
    so that a mask that is ignored or inverted is seen.
    """
    length = spec.shape[-1]
    rows = spec.shape[:-1]
    lengths = np.asarray(generator.integers((length + 1) // 2, length + 1, rows))
    flat = lengths.reshape(-1)
    if flat.size > 1:
        flat[0] = length
    if flat.size and length > 1:
        flat[-1] = min(int(flat[-1]), length - 1)
    is_valid = np.arange(length) < lengths[..., None]
    return np.where(is_valid, spec.valid, spec.padding)


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

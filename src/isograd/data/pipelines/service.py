"""Answers of a worker that holds one pipeline."""

from __future__ import annotations

import copy
import enum
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from isograd.data.marks import mark_before_draw
from isograd.data.pipelines.base import Chain, Emitted, Pipeline
from isograd.data.pipelines.features import extents, features, probe
from isograd.data.pipelines.listing import describe
from isograd.data.pipelines.values import as_array, in_container, unbatched, unwire, wire
from isograd.data.pipelines.worker_draws import as_wire
from isograd.errors import UserCodeError
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import tensor_value

#: Seconds after which drawing ends, with as many draws as there are.
_DRAWING_S = 20.0
_LEAST_DRAWS = 200
#: Steps of 8 bits by which equal transforms round otherwise: MindSpore turns PIL pictures to HSV
#: and back even where the hue stays, which keeps 99 % of all colours within 4 (measured, 2.10).
_LEVELS = 4.0


def open_pipeline(value: Any, again: Any) -> Pipeline:
    """The pipeline that a user's value is."""
    from isograd.data.pipelines.mindspore_pipeline import MindSporePipeline, is_mindspore_pipeline
    from isograd.data.pipelines.plain_pipeline import IndexedPipeline, IterablePipeline
    from isograd.data.pipelines.torch_pipeline import TorchPipeline, is_torch_pipeline

    if is_torch_pipeline(value):
        return TorchPipeline(value)
    if is_mindspore_pipeline(value):
        return MindSporePipeline(value)
    if hasattr(value, "__getitem__") and hasattr(value, "__len__"):
        if not isinstance(value, (dict, str, bytes)):
            return IndexedPipeline(value)
    if hasattr(value, "__iter__") and not isinstance(value, (dict, str, bytes)):
        return IterablePipeline(value, again)
    raise UserCodeError(
        f"the pipeline is a {type(value).__name__}, which yields no samples",
        "Return a DataLoader, a Dataset, a mindspore.dataset or an iterable.",
    )


def changed(transform: Any, changes: dict[str, Any]) -> Any:
    """A copy of a transform with other parameters: in the types that it had."""
    found = copy.copy(transform)
    for name, value in changes.items():
        old = getattr(transform, name)
        if isinstance(old, enum.Enum):
            value = next((m for m in type(old) if m.name.lower() == str(value).lower()), old)
        elif isinstance(old, tuple) and isinstance(value, list):
            value = tuple(value)
        setattr(found, name, value)
    return found


class DataService:
    """Answers requests by name; an unknown name is an error."""

    def __init__(self, framework: str = "data") -> None:
        self._pipeline: Pipeline | None = None
        self._streams: dict[str, Iterator[Emitted]] = {}
        self._chains: list[Chain] = []

    def call(self, method: str, arguments: list[Any]) -> Any:
        """Run one request; what the user's code raises names the user's line."""
        own = getattr(self, f"do_{method}", None)
        if own is None:
            raise ValueError(f"unknown request {method!r}")
        with user_code(f"the pipeline ({method})"):
            return own(*arguments)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that is open."""
        assert self._pipeline is not None
        return self._pipeline

    def do_open(self, reference: str, folder: str, what: str) -> dict[str, Any]:
        """Import and call the user's callable, and say what it returned."""
        function = load_callable(reference, folder, what)
        with user_code(f"{what} {reference!r}"):
            value = function()
        self._pipeline = open_pipeline(value, function)
        self._chains = [chain for chain in self.pipeline.chains() if chain.field]
        return {
            "kind": self.pipeline.kind,
            "size": self.pipeline.size(),
            "is_batched": self.pipeline.is_batched,
            "batch_size": self.pipeline.batch_size,
            "drop_last": self.pipeline.drop_last,
            "chains": [
                {"field": chain.field, "steps": [describe(t) for t in chain.transforms]}
                for chain in self._chains
            ],
        }

    def do_begin(self, name: str, order: str) -> None:
        """Begin a stream of batches; order: "real" or "ordered"."""
        pipeline = self.pipeline
        self._streams[name] = pipeline.real() if order == "real" else pipeline.ordered()

    def do_next(self, name: str, count: int, is_split: bool) -> list[dict[str, Any]]:
        """Up to so many batches of a stream; is_split: as single samples."""
        found = []
        for _ in range(count):
            emitted = next(self._streams[name], None)
            if emitted is None:
                break
            rows = unbatched(emitted.row) if is_split and self.pipeline.is_batched else None
            found.append(
                {
                    "rows": [
                        {key: wire(value) for key, value in row.items()}
                        for row in (rows or [emitted.row])
                    ],
                    "is_split": rows is not None,
                    "ids": emitted.ids,
                }
            )
        return found

    def do_epochs(self, count: int, most: int) -> dict[str, Any]:
        """Positions and sizes of batches of some epochs, and what was noted."""
        found = self.pipeline.epoch_ids(count, most)
        return {"epochs": found, "notes": list(self.pipeline.notes)}

    def do_worker_draws(self) -> dict[str, Any]:
        """What the workers of the pipeline drew for one sample, or why that is not known."""
        try:
            return {"draws": as_wire(self.pipeline.worker_draws()), "notes": []}
        except Exception as error:  # a probe may break what the user's code expects of its input
            said = (str(error).splitlines() or [type(error).__name__])[0]
            note = f"what worker processes draw was not compared: {said[:120]}"
            return {"draws": [], "notes": [note]}

    def do_trace(self, chain: int, positions: list[int]) -> list[list[dict[str, Any]]]:
        """For each sample what enters a chain, and what every transform gives."""
        own = self._chains[chain]
        found = []
        for value in self.pipeline.inputs(own, positions):
            steps = [wire(value)]
            for transform in own.transforms:
                value = own.call(transform, value)
                steps.append(wire(value))
            found.append(steps)
        return found

    def do_marks(self, chain: int, steps: int, positions: list[int]) -> list[dict[str, Any]]:
        """For each sample the mark of what the first so many transforms give, asked anew."""
        own = self._chains[chain]
        found = []
        for value in self.pipeline.fresh_inputs(own, positions):
            for transform in own.transforms[:steps]:
                value = own.call(transform, value)
            is_plain = isinstance(value, (str, bytes))
            array = None if is_plain else as_array(value)
            if array is None and not is_plain:
                raise UserCodeError(f"a sample is a {type(value).__name__}", "Give an array.")
            one = mark_before_draw(value if array is None else array)
            sketched = None if one.sketch is None else tensor_value(one.sketch)
            found.append({"digest": one.digest.hex(), "sketch": sketched})
        return found

    def do_apply(self, chain: int, steps: list[int], given: dict[str, Any]) -> dict[str, Any]:
        """Some transforms of a chain, in the order that is given, on a value."""
        own = self._chains[chain]
        value = unwire(given)
        for number in steps:
            value = own.call(own.transforms[number], value)
        return wire(value)

    def do_changed(
        self, chain: int, step: int, given: dict[str, Any], changes: dict[str, Any]
    ) -> dict[str, Any]:
        """One transform with some of its parameters changed, on a value."""
        own = self._chains[chain]
        return wire(own.call(changed(own.transforms[step], changes), unwire(given)))

    def do_draw(
        self,
        chain: int,
        steps: list[int],
        given: dict[str, Any],
        count: int,
        changes: dict[str, Any],
    ) -> dict[str, Any]:
        """Features of many draws on a probe like the value.

        changes: parameters of the first of the steps that are set otherwise.
        """
        own = self._chains[chain]
        transforms = [own.transforms[step] for step in steps]
        if changes:
            transforms[0] = changed(transforms[0], changes)
        example = as_array(unwire(given))
        assert example is not None
        shown, container = probe(example), given["container"]
        rows: list[Any] = []
        found = None
        started = time.monotonic()
        for number in range(count):
            self.pipeline.before_draw(number)
            value = in_container(shown, container)
            for transform in transforms:
                value = own.call(transform, value)
            found = as_array(value)
            if found is not None:
                rows.append(features(found))
            if number >= _LEAST_DRAWS and time.monotonic() - started > _DRAWING_S:
                break
        self.pipeline.after_draws()
        width = min((len(row) for row in rows), default=0)
        table = np.stack([row[:width] for row in rows]) if rows else np.zeros((0, 0))
        is_bytes = found is not None and found.dtype == np.uint8
        tolerances = np.full(width, _LEVELS if is_bytes else 0.0)
        if found is not None:
            tolerances[: extents(found)] = 0.0
        return {"features": tensor_value(table), "tolerances": tolerances.tolist()}

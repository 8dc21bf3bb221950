"""The entry of `isograd data`: look at one source, or compare two."""

from __future__ import annotations

import time
from dataclasses import dataclass

from isograd.data.inventory.run import InventoryOptions, inventory
from isograd.data.model import DataReport, soundness
from isograd.data.sources.open import open_samples
from isograd.progress import Progress, SilentProgress


@dataclass(frozen=True)
class DataOptions:
    """label, classes: as the command's options; limit: samples to read, 0 for all.

    key: the field by which samples of A and B are paired; epochs: how many are compared in order.
    """

    label: str | None = None
    classes: int | None = None
    limit: int = 0
    key: str | None = None
    epochs: int = 2
    shown: int = 48
    seed: int = 0

    @property
    def inventory(self) -> InventoryOptions:
        """What of it concerns one source."""
        return InventoryOptions(self.label, self.classes, self.shown, self.limit, self.seed)


def look(address: str, options: DataOptions, progress: Progress | None = None) -> DataReport:
    """What is in one source, and is it sound?"""
    started = time.monotonic()
    source = open_samples(address)
    try:
        found = inventory(source, options.inventory, progress or SilentProgress())
    finally:
        source.close()
    return DataReport(
        soundness((found,)),
        (found,),
        elapsed_s=time.monotonic() - started,
        seed=options.seed,
    )

"""Two addresses as two splits of one data set, so that what stands in both is a leak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isograd.data.sources.base import Item, SampleSource


class Splits(SampleSource):
    """Samples of several sources one after the other; the split is the source's address."""

    def __init__(self, sources: tuple[SampleSource, ...]) -> None:
        super().__init__(" and ".join(source.address for source in sources))
        self._sources = sources
        self.format = " and ".join(dict.fromkeys(source.format for source in sources))
        self.labels = sources[0].labels

    def samples(self) -> Iterator[Item]:
        self.left_out.clear()
        for source in self._sources:
            for item in source.samples():
                key = f"{source.address}: {item.key}"
                yield replace(item, key=key, split=source.address)
            self.notes += [note for note in source.notes if note not in self.notes]
            self.left_out += source.left_out

    @property
    def is_divisible(self) -> bool:
        return all(source.is_divisible for source in self._sources)

    def part(self, number: int, count: int) -> Splits:
        return Splits(tuple(source.part(number, count) for source in self._sources))

    def count(self) -> int | None:
        counts = [source.count() for source in self._sources]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def close(self) -> None:
        for source in self._sources:
            source.close()

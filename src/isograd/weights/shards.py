"""Which tensors go into which file, and the index that puts the files together."""

from __future__ import annotations

import json
from collections.abc import Sequence

from isograd.weights.writers import Entry

INDEX = "model.safetensors.index.json"


def shards_of(entries: Sequence[Entry], most_bytes: int) -> list[list[Entry]]:
    """The entries in order, cut so that no shard is larger, unless one tensor is."""
    shards: list[list[Entry]] = []
    room = -1
    for entry in entries:
        if entry.size_bytes > room or not shards:
            shards.append([])
            room = most_bytes
        shards[-1].append(entry)
        room -= entry.size_bytes
    return shards


def shard_name(number: int, count: int) -> str:
    """The name of a shard, counted from 0, as Hugging Face's libraries call it."""
    return f"model-{number + 1:05d}-of-{count:05d}.safetensors"


def index_text(shards: Sequence[Sequence[Entry]]) -> str:
    """The index as JSON."""
    places = {
        entry.name: shard_name(number, len(shards))
        for number, shard in enumerate(shards)
        for entry in shard
    }
    total = sum(entry.size_bytes for shard in shards for entry in shard)
    return json.dumps({"metadata": {"total_size": total}, "weight_map": places}, indent=1) + "\n"

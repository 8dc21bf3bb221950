"""Whether both sides yield the same samples in the same order, batch by batch, epoch by epoch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from isograd.data.compare.side import Epoch
from isograd.data.model import Cause, Difference, Order
from isograd.findings import Finding, Fix, Level

_FOR_LOOP = (
    "MindSpore repeats one shuffle where a seed is set and a new iterator is made per epoch. "
    "Make one iterator, `it = dataset.create_dict_iterator(num_epochs=EPOCHS)`, and loop over "
    "it in every epoch."
)


#: An order that a shuffle would have by chance less often than this is no shuffle's.
_LEAST_CHANCE = 1e-3


@dataclass(frozen=True)
class Sequences:
    """The epochs of one side; own: with positions in its own order, epochs: in that of A.

    spare: how many samples of its source are in no batch, because the last one is not full.
    """

    epochs: Sequence[Epoch]
    own: Sequence[Epoch]
    spare: int = 0

    @property
    def first(self) -> Epoch:
        """The first epoch."""
        return self.epochs[0]

    @property
    def is_shuffled(self) -> bool:
        """Whether the first epoch is not in the source's order."""
        return _is_shuffled(self.own[0])

    @property
    def is_in_order(self) -> bool:
        """Whether all epochs are in the source's order, as shuffled ones hardly are by chance."""
        chance = math.prod(_chance_of_order(*_falling(epoch)) for epoch in self.own)
        return not any(map(_is_shuffled, self.own)) and chance < _LEAST_CHANCE

    @property
    def repeats(self) -> bool:
        """Whether every epoch has the order of the first, though that is shuffled."""
        return (
            self.is_shuffled
            and len(self.own) > 1
            and all(epoch.ids == self.own[0].ids for epoch in self.own[1:])
        )

    @property
    def repeats_by_chance(self) -> bool:
        """Whether so few samples may be in one order in all epochs though each is drawn."""
        orders = math.factorial(min(len(self.own[0].ids), 20))
        return bool(orders ** (len(self.own) - 1) * _LEAST_CHANCE <= 1)


def _falling(epoch: Epoch) -> tuple[int, int]:
    """How many positions are known, and how many of them are behind a greater one."""
    known = [n for n in epoch.ids if n >= 0]
    return len(known), sum(x > y for x, y in itertools.pairwise(known))


def _is_shuffled(epoch: Epoch) -> bool:
    count, falling = _falling(epoch)
    return count > 3 and count - 1 - falling < 0.8 * (count - 1)


def _chance_of_order(count: int, falling: int) -> float:
    """How likely a random permutation has no more descents: Eulerian numbers over count!."""
    if count > 40:
        return 0.0  # four fifths of the steps rise: six standard deviations from the half
    row = [1]
    for n in range(2, count + 1):
        row = [
            (k + 1) * (row[k] if k < n - 1 else 0) + (n - k) * (row[k - 1] if k else 0)
            for k in range(n)
        ]
    return sum(row[: falling + 1]) / math.factorial(count)


def order_of(a: Sequences, b: Sequences) -> Order:
    """How B's first epoch stands to A's."""
    if a.first.ids == b.first.ids:
        return Order.SAME
    return Order.PERMUTED if sorted(a.first.ids) == sorted(b.first.ids) else Order.OTHER


def differences(a: Sequences, b: Sequences, is_whole: bool) -> list[Difference]:
    """Every way in which the order differs; is_whole: the epochs were seen to their end."""
    return list(_shuffling(a, b)) + list(_samples(a, b, is_whole)) + list(_batches(a, b, is_whole))


def _found(
    code: str, message: str, reference: str, port: str, fix: str, evidence: tuple[str, ...] = ()
) -> Difference:
    finding = Finding(code, Level.ERROR, message, evidence=evidence, fix=Fix(fix))
    # positions were counted on both sides: nothing is left to prove
    return Difference(finding, Cause(code, True, message, reference, port))


def _shuffling(a: Sequences, b: Sequences) -> Iterator[Difference]:
    if a.is_shuffled != b.is_shuffled:
        if not (b if a.is_shuffled else a).is_in_order:
            return  # of few samples: a shuffle may leave them nearly in order
        who, other = ("A", "B") if a.is_shuffled else ("B", "A")
        yield _found(
            "data.shuffle",
            f"{who} shuffles and {other} does not",
            "shuffled" if a.is_shuffled else "in order",
            "shuffled" if b.is_shuffled else "in order",
            f"Give {other} shuffle={a.is_shuffled if other == 'B' else b.is_shuffled}; "
            "MindSpore's NumpySlicesDataset, GeneratorDataset and file formats shuffle by default.",
            (_beginning("A", a), _beginning("B", b)),
        )
        return
    if a.is_shuffled and a.repeats != b.repeats:
        who, other = ("A", "B") if a.repeats else ("B", "A")
        if (a if a.repeats else b).repeats_by_chance:
            return
        yield _found(
            "data.shuffle_repeats",
            f"{who} repeats one permutation in every epoch, {other} draws a new one",
            "repeats" if a.repeats else "new in every epoch",
            "repeats" if b.repeats else "new in every epoch",
            _FOR_LOOP,
            (_beginning("A", a), _beginning("B", b)),
        )
    if not a.is_shuffled and a.first.ids != b.first.ids:
        if sorted(set(a.first.ids)) == sorted(set(b.first.ids)) and len(a.first.ids) == len(
            b.first.ids
        ):
            yield _found(
                "data.order",
                "both yield the same samples in fixed, different orders",
                _beginning("A", a),
                _beginning("B", b),
                "Sort the files in both, or give both one list.",
                (_beginning("A", a), _beginning("B", b)),
            )


def _beginning(side: str, one: Sequences) -> str:
    return f"{side} begins with samples {', '.join(map(str, one.first.ids[:8]))}"


def _samples(a: Sequences, b: Sequences, is_whole: bool) -> Iterator[Difference]:
    if not is_whole:
        return
    only_a = sorted(set(a.first.ids) - set(b.first.ids) - {-1})
    only_b = sorted(set(b.first.ids) - set(a.first.ids) - {-1})
    unknown = b.first.ids.count(-1)
    if not only_a and not only_b and not unknown:
        return
    if (a.is_shuffled or b.is_shuffled) and (a.spare or b.spare):
        # which samples come last is drawn: each side may lack others
        if len(only_a) <= b.spare + unknown and len(only_b) + unknown <= a.spare + b.spare:
            return
    if _is_last_batch(a, b, only_a, only_b, unknown):
        return
    count_a, count_b = len(a.first.ids), len(b.first.ids)
    same = count_a == count_b and len(only_a) == len(only_b) + unknown
    code = "data.shard" if same and count_a else "data.samples"
    what = (
        f"both yield {count_a:,} samples, but {len(only_a):,} of them are others"
        if same
        else f"A yields {count_a:,} samples and B {count_b:,}"
    )
    yield _found(
        code,
        what,
        _beginning("A", a),
        _beginning("B", b),
        "Give both the same number of shards and the same rank: num_shards and shard_id of "
        "MindSpore are num_replicas and rank of torch's DistributedSampler.",
        (f"only in A: {_listed(only_a)}", f"only in B: {_listed(only_b)}"),
    )


def _listed(found: list[int]) -> str:
    more = f" and {len(found) - 8:,} more" if len(found) > 8 else ""
    return (", ".join(map(str, found[:8])) or "none") + more


def _is_last_batch(
    a: Sequences, b: Sequences, only_a: list[int], only_b: list[int], unknown: int
) -> bool:
    """Whether the samples that one side lacks are those of a last batch that is not full."""
    if unknown or not a.first.sizes or not b.first.sizes:
        return False
    full = max(a.first.sizes)
    if full != max(b.first.sizes):
        return False
    if len(a.first.ids) == len(b.first.ids):
        return False
    longer, missing = (a, only_a) if len(a.first.ids) > len(b.first.ids) else (b, only_b)
    rest = len(longer.first.ids) % full
    if a.is_shuffled or b.is_shuffled:  # which samples come last is drawn
        return rest == len(missing) > 0
    return rest > 0 and sorted(longer.first.ids[-rest:]) == missing


def _batches(a: Sequences, b: Sequences, is_whole: bool) -> Iterator[Difference]:
    sizes_a, sizes_b = a.first.sizes, b.first.sizes
    if not sizes_a or not sizes_b:
        return
    full_a, full_b = max(sizes_a), max(sizes_b)
    if full_a != full_b:
        yield _found(
            "data.batch_size",
            f"batches of A have {full_a:,} samples, those of B {full_b:,}",
            str(full_a),
            str(full_b),
            f"Give B the batch size {full_a}.",
        )
        return
    if not is_whole:
        return
    count_a, count_b = len(a.first.ids), len(b.first.ids)
    repeats = [(side, _repeats(one)) for side, one in (("A", a), ("B", b))]
    if repeats[0][1] != repeats[1][1]:
        side, times = max(repeats, key=lambda pair: pair[1])
        yield _found(
            "data.repeat",
            f"{side} goes {times:.3g} times through its samples in one epoch"
            + (", and batches cross the border" if _crosses(a if side == "A" else b) else ""),
            f"{repeats[0][1]:.3g}",
            f"{repeats[1][1]:.3g}",
            "Call repeat after batch, or leave it out and loop over epochs.",
        )
        return
    rest = count_a % full_a if count_a > count_b else count_b % full_a
    if count_a != count_b and rest and abs(count_a - count_b) == rest:
        keeps, drops = ("A", "B") if count_a > count_b else ("B", "A")
        yield _found(
            "data.drop_last",
            f"{drops} drops the last batch of {rest:,} samples, {keeps} yields it",
            "dropped" if drops == "A" else "kept",
            "dropped" if drops == "B" else "kept",
            "Give drop_last (torch) and drop_remainder (MindSpore) the same value.",
        )
    elif sizes_a != sizes_b and count_a == count_b:
        yield _found(
            "data.repeat" if _crosses(a) != _crosses(b) else "data.batch_size",
            "batches are cut at different places",
            f"sizes {_listed(list(sizes_a))}",
            f"sizes {_listed(list(sizes_b))}",
            "Call repeat after batch in both.",
        )


def _repeats(one: Sequences) -> float:
    ids = [n for n in one.first.ids if n >= 0]
    return len(ids) / max(1, len(set(ids)))


def _crosses(one: Sequences) -> bool:
    """Whether a batch holds the end of one round and the beginning of the next."""
    seen: set[int] = set()
    position = 0
    for size in one.first.sizes:
        batch = one.first.ids[position : position + size]
        position += size
        old = [n in seen for n in batch]
        if any(old) and not all(old):
            return True
        seen.update(batch)
    return False

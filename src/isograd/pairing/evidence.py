"""Which of several alike candidates is which: by their names where these tell, else by order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from isograd.pairing.conventions import by_meaning, words_and_numbers

#: Words that name a kind of layer: alike candidates are of one kind, so these say little.
KIND_WORDS = frozenset({"conv", "norm", "fc", "proj", "embed", "layer"})
WORTH_OF_KIND = 0.1

Path = tuple[str, ...]
Pairs = list[tuple[int, int]]


@lru_cache(maxsize=4096)
def _spelled(path: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    words: list[str] = []
    numbers: list[int] = []
    for component in path:
        more_words, more_numbers = words_and_numbers(component)
        words.extend(more_words)
        numbers.extend(more_numbers)
    return tuple(words), tuple(numbers)


def pair_alike(
    reference: Sequence[Path],
    port: Sequence[Path],
    reference_order: Sequence[tuple[int, int]],
    port_order: Sequence[tuple[int, int]],
) -> Pairs:
    """Pair candidates that only their names and their order tell apart; as many on both sides.

    Numbers count as ranks, not as values: a porter may start at 1 or skip activations.  Words that
    all candidates of a side share say nothing.  What names leave open, the order decides.
    """
    if len(reference) == 1:
        return [(0, 0)]
    reference_tokens, port_tokens = _tokens(reference), _tokens(port)
    pairs = _decided_by_tokens(reference_tokens, port_tokens)
    taken_reference = {pair[0] for pair in pairs}
    taken_port = {pair[1] for pair in pairs}
    rest_reference = sorted(
        (index for index in range(len(reference)) if index not in taken_reference),
        key=lambda index: (reference_order[index], index),
    )
    rest_port = sorted(
        (index for index in range(len(port)) if index not in taken_port),
        key=lambda index: (port_order[index], index),
    )
    return pairs + list(zip(rest_reference, rest_port, strict=True))


def _tokens(paths: Sequence[Path]) -> list[frozenset[object]]:
    """What each path says that not all of its group say: words, and ranks within equal words."""
    spelt = [_spelled(path) for path in paths]
    meant = by_meaning([words for words, _ in spelt])
    spelled = [(words, numbers) for words, (_, numbers) in zip(meant, spelt, strict=True)]
    ranks: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    for words, numbers in spelled:
        ranks.setdefault(words, []).append(numbers)
    ordered = {words: sorted(numbers) for words, numbers in ranks.items()}
    tokens: list[set[object]] = []
    for words, numbers in spelled:
        rank = ordered[words].index(numbers)
        mine: set[object] = set(words)
        if len(ordered) == 1:
            mine.add(rank)
        elif len(ordered[words]) > 1:
            mine.update((word, rank) for word in set(words))
        tokens.append(mine)
    counts = Counter(token for mine in tokens for token in mine)
    return [frozenset(token for token in mine if counts[token] < len(paths)) for mine in tokens]


def _decided_by_tokens(
    reference: Sequence[frozenset[object]], port: Sequence[frozenset[object]]
) -> Pairs:
    """Pairs whose names are closer to each other than to any other candidate's."""
    weights_here = Counter(token for mine in reference for token in mine)
    weights_there = Counter(token for mine in port for token in mine)
    holders: dict[object, list[int]] = {}
    for index, mine in enumerate(port):
        for token in mine:
            holders.setdefault(token, []).append(index)
    scores: dict[tuple[int, int], float] = {}
    for index, mine in enumerate(reference):
        for token in mine:
            if token not in holders:
                continue
            weight = _telling(token) / (weights_here[token] * weights_there[token])
            for other in holders[token]:
                scores[index, other] = scores.get((index, other), 0.0) + weight
    pairs: Pairs = []
    while True:
        decided = _mutual_best(scores)
        if not decided:
            return pairs
        pairs.extend(decided)
        rows = {pair[0] for pair in decided}
        columns = {pair[1] for pair in decided}
        scores = {
            pair: score
            for pair, score in scores.items()
            if pair[0] not in rows and pair[1] not in columns
        }


def _telling(token: object) -> float:
    word = token[0] if isinstance(token, tuple) else token
    return WORTH_OF_KIND if word in KIND_WORDS else 1.0


def _mutual_best(scores: dict[tuple[int, int], float]) -> Pairs:
    rows: dict[int, list[tuple[float, int]]] = {}
    columns: dict[int, list[tuple[float, int]]] = {}
    for (row, column), score in scores.items():
        rows.setdefault(row, []).append((score, column))
        columns.setdefault(column, []).append((score, row))
    best_of_row = {row: _single_best(found) for row, found in rows.items()}
    best_of_column = {column: _single_best(found) for column, found in columns.items()}
    return [
        (row, column)
        for row, column in best_of_row.items()
        if column is not None and best_of_column[column] == row
    ]


def _single_best(found: list[tuple[float, int]]) -> int | None:
    best = max(score for score, _ in found)
    holders = [index for score, index in found if score > best - 1e-9]
    return holders[0] if len(holders) == 1 else None


def closeness(reference: Path, port: Path) -> float:
    """How alike two paths are called, from 0 to 1: shared words and equal numbers."""
    here, there = _spelled(reference), _spelled(port)
    words = len(set(here[0]) & set(there[0])) / max(1, len(set(here[0]) | set(there[0])))
    numbers = 1.0 if here[1] == there[1] else 0.0
    return 0.7 * words + 0.3 * numbers


def align_in_order(reference: int, port: int, score: Callable[[int, int], float | None]) -> Pairs:
    """The pairs of two sequences that keep the order and have the greatest sum of scores.

    Needleman and Wunsch without gap costs; a score of None forbids a pair.
    """
    table = [[0.0] * (port + 1) for _ in range(reference + 1)]
    scores = [[score(row, column) for column in range(port)] for row in range(reference)]
    for row in range(reference):
        above, current, row_scores = table[row], table[row + 1], scores[row]
        for column in range(port):
            best = max(above[column + 1], current[column])
            value = row_scores[column]
            if value is not None and above[column] + value > best:
                best = above[column] + value
            current[column + 1] = best
    pairs: Pairs = []
    row, column = reference, port
    while row and column:
        value = scores[row - 1][column - 1]
        total = table[row][column]
        if value is not None and total == table[row - 1][column - 1] + value:
            pairs.append((row - 1, column - 1))
            row, column = row - 1, column - 1
        elif total == table[row - 1][column]:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]


def in_order(pairs: Sequence[tuple[int, int]]) -> Pairs:
    """The longest part of the pairs that keeps the order of both sides."""
    ordered = sorted(pairs)
    if not ordered:
        return []
    before = [-1] * len(ordered)
    tails: list[int] = []
    for index, (_, column) in enumerate(ordered):
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            if ordered[tails[middle]][1] < column:
                low = middle + 1
            else:
                high = middle
        before[index] = tails[low - 1] if low else -1
        if low == len(tails):
            tails.append(index)
        else:
            tails[low] = index
    kept: Pairs = []
    index = tails[-1]
    while index >= 0:
        kept.append(ordered[index])
        index = before[index]
    return kept[::-1]

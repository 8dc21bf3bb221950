"""Tied weights: one tensor under several names pairs once, through its first name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from isograd.frameworks.base import ParameterInfo
from isograd.pairing.results import ParameterPair


class Ties:
    """The first names of the parameters of one side."""

    def __init__(self, parameters: Iterable[ParameterInfo]) -> None:
        self._first = {info.name: info.tied_to or info.name for info in parameters}

    def first(self, name: str) -> str:
        """The first name of the tensor."""
        return self._first.get(name, name)

    def is_alias(self, name: str) -> bool:
        """Whether the tensor has an earlier name."""
        return self.first(name) != name


def with_ties(pairs: Sequence[ParameterPair], reference: Ties, port: Ties) -> list[ParameterPair]:
    """The pairs with first names, each once; a tie that only one side has is flagged."""
    by_tensor: dict[tuple[tuple[str, ...], tuple[str, ...]], ParameterPair] = {}
    for pair in pairs:
        names = tuple(map(reference.first, pair.reference)), tuple(map(port.first, pair.port))
        found = by_tensor.get(names)
        if found is None or _is_surer(pair, found):
            by_tensor[names] = replace(pair, reference=names[0], port=names[1])
    partners: defaultdict[str, set[str]] = defaultdict(set)
    port_partners: defaultdict[str, set[str]] = defaultdict(set)
    for names_here, names_there in by_tensor:
        if len(names_here) == len(names_there) == 1:
            partners[names_here[0]].add(names_there[0])
            port_partners[names_there[0]].add(names_here[0])
    return [
        replace(
            pair,
            untied=len(pair.reference) == 1 and len(partners[pair.reference[0]]) > 1,
            tied_only_in_port=len(pair.port) == 1 and len(port_partners[pair.port[0]]) > 1,
        )
        for pair in by_tensor.values()
    ]


def _is_surer(pair: ParameterPair, found: ParameterPair) -> bool:
    return pair.how != "structure" and found.how == "structure"

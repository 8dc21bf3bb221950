"""Attributes of layers that a project reads, and MindSpore's own layers do not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from isograd.convert.facts import Facts


def attributes_read(facts: Iterable[Facts], unheld: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Why classes of layers are the runtime's, which holds all that torch's does.

    unheld: as `Knowledge.unheld_attributes`.
    """
    return {
        api: f"its {name} is read, which MindSpore's does not hold"
        for one in facts
        for api, name in sorted(one.read_of_layers)
        if name in unheld.get(api, ())
    }

"""Why a port uses the runtime: what stands where MindSpore's own would not be the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from isograd.convert.analysis.layers import Layers
from isograd.convert.generated import library
from isograd.convert.model import RuntimeUse
from isograd.convert.spelling import COMPOSITES, members_read
from isograd.knowledge.entry import Entry
from isograd.knowledge.marks import MARKED


@dataclass(frozen=True)
class Reason:
    """The API of torch that a runtime function replaces, and why MindSpore's own does not."""

    api: str
    why: str


def reasons_of(entry: Entry, code: str, layers: Layers) -> dict[str, Reason]:
    """The runtime functions in marked code that is written for an API, each with its reason."""
    names = {found[2] for found in MARKED.finditer(code) if found[1] == COMPOSITES}
    if not names:
        return {}
    return dict.fromkeys(names, Reason(entry.api, _why(entry, layers)))


def _why(entry: Entry, layers: Layers) -> str:
    if layers.is_runtime(entry.api) and (entry.factory or entry.base):
        return layers.every or layers.why[entry.api]
    if entry.difference:
        return entry.difference
    if not entry.target:
        return f"MindSpore has no {entry.api.rpartition('.')[2]}"
    return f"{entry.target} does not take these arguments as torch does"


def uses_of(
    file: str, alias: str, text: str, names: Iterable[str], reasons: Mapping[str, Reason]
) -> tuple[RuntimeUse, ...]:
    """Where a port's text reads these names of the generated module.

    alias: what the text calls that module.
    """
    wanted = set(names)
    found: dict[str, RuntimeUse] = {}
    for number, line in enumerate(text.split("\n"), 1):
        for name in members_read(alias, line):
            if name not in wanted:
                continue
            known = found.get(name)
            if known is not None:
                found[name] = replace(known, uses=known.uses + 1)
                continue
            reason = reasons.get(name) or Reason("", library().first_sentence(name))
            found[name] = RuntimeUse(name, file, number, 1, reason.api, reason.why)
    return tuple(found.values())

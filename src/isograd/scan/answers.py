"""What isograd's knowledge says of each name that a scan found."""

from __future__ import annotations

import functools
from typing import Any

from isograd.knowledge.entry import Applicability, Entry, Status, Way
from isograd.knowledge.store import Knowledge
from isograd.scan.model import Answer
from isograd.scan.names import TorchNames

#: Types and bases that have a plain counterpart and no behaviour to execute.
TYPES = {
    "torch.Tensor": "mindspore.Tensor",
    "torch.dtype": "mindspore.dtype",
    "torch.nn.Module": "mindspore.nn.Cell",
    "torch.nn.Parameter": "mindspore.Parameter",
    "torch.nn.Module.training": "mindspore.nn.Cell.training",
}
#: Parts of torch's own machinery: MindSpore has no such parts to compare with.
_INTERNAL = ("torch.ops.", "torch.fx.", "torch.export.", "torch.library.", "torch.utils._pytree.")
_INTERNAL_NOTE = "it is a part of torch's own machinery, which MindSpore does not have"
_INTERNAL_ADVICE = "Leave it out, or write what it is used for with MindSpore's public operators."
#: Other homes of the same thing.
_HOMES = (
    ("torch.cuda.amp.", "torch.amp."),
    ("torchvision.transforms.v2.functional.", "torchvision.transforms.functional."),
    ("torchvision.transforms.v2.", "torchvision.transforms."),
    ("torchvision.transforms.functional.", "torchvision.transforms."),
)
_UNSURE_NOTE = "the type of the receiver is not known"
_NO_ENTRY = "isograd's knowledge has no entry for it"


class Answers:
    """Turns names into answers; each name is looked up once."""

    def __init__(self, knowledge: Knowledge, names: TorchNames) -> None:
        self._knowledge = knowledge
        self._names = names
        self._known: dict[str, Answer] = {}
        self._unsure: dict[str, Answer] = {}

    def of(self, api: str) -> Answer:
        """The answer for a name that was resolved."""
        found = self._known.get(api)
        if found is None:
            found = self._known[api] = self._look_up(api)
        return found

    def unsure(self, api: str) -> Answer:
        """The answer for a method whose receiver is not known."""
        found = self._unsure.get(api)
        if found is None:
            found = self._unsure[api] = Answer(api, Status.UNKNOWN.value, note=_UNSURE_NOTE)
        return found

    def is_use(self, api: str) -> bool:
        """Whether naming it is a use: a package by itself is none."""
        return api != "torch" and self._names.kind(api) != "m"

    def _look_up(self, api: str) -> Answer:
        entry = self._find(api)
        if entry is not None:
            return _answer(entry)
        if api in TYPES:
            return Answer(api, Status.SUPPORTED.value, TYPES[api], effort="safe")
        if api.startswith(_INTERNAL) or any(part[:1] == "_" for part in api.split(".")):
            return Answer(
                api,
                Status.MISSING.value,
                note=_INTERNAL_NOTE,
                effort=Applicability.HAND.value,
                way=Way.COMPOSE.value,
                advice=_INTERNAL_ADVICE,
            )
        known = self._names.kind(api)
        note = _NO_ENTRY if known else f"torch has no such public name; {_NO_ENTRY}"
        return Answer(api, Status.UNKNOWN.value, note=note)

    def _find(self, api: str) -> Entry | None:
        entry = self._knowledge.find(api)
        name = api
        for home, other in _HOMES:
            if entry is None and name.startswith(home):
                name = other + name[len(home) :]
                entry = self._knowledge.find(name)
        return entry or self._by_public_name.get(api)

    @functools.cached_property
    def _by_public_name(self) -> dict[str, Entry]:
        """The entries by the names under which the scan knows what they name."""
        found: dict[str, Entry] = {}
        for entry in self._knowledge.entries:
            for name in (entry.api, *entry.aliases):
                found.setdefault(self._names.canonical(name), entry)
        return found


def _answer(entry: Entry) -> Answer:
    verified = entry.verified
    evidence: tuple[tuple[str, Any], ...] | None = None
    if verified is not None:
        evidence = (
            ("mindspore", verified.mindspore),
            ("torch", verified.torch),
            ("device", verified.device),
            ("forward", verified.forward),
            ("gradient", verified.gradient),
        )
        if verified.compiled:
            evidence = (*evidence, ("compiled", verified.compiled))
    return Answer(
        api=entry.api,
        status=entry.status.value,
        target=entry.target,
        note=entry.difference,
        effort=entry.applicability.value,
        way=entry.way.value if entry.way is not None else "",
        advice=entry.advice,
        verified=evidence,
    )

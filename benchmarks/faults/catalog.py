"""The networks and the edits of this benchmark, together with those of benchmarks/verify.

An entry of faults.toml has the fields of benchmarks/verify/faults.toml and these:

causes   every cause of an edit that makes several faults, instead of `cause`
edits    several places, each with `find` and `replace`, instead of one
accept   other ids of the vocabulary that are as right; a comment beside the entry says why
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomllib

BENCHMARK = Path(__file__).resolve().parent
VERIFY_BENCHMARK = BENCHMARK.parent / "verify"
sys.path.append(str(VERIFY_BENCHMARK))

import faults as verify_faults  # noqa: E402 - found through the line above

OWN = ("mlp", "llama", "text", "image", "mlp_bf16", "llama_bf16")
CASES = {
    **verify_faults.CASES,
    **{name: BENCHMARK / "networks" / name / "case.toml" for name in OWN},
}
#: resnet50 takes minutes for a run; it is run where it is asked for.
USUAL = tuple(name for name in CASES if name != "resnet50")
BFLOAT16 = ("mlp_bf16", "llama_bf16")

FaultError = verify_faults.FaultError


@dataclass(frozen=True)
class Edit:
    """One edit of one port, with the answer that isograd should give.

    places: pairs of the text to find and its replacement; causes: every id that one run should
    name; accept: ids that are as right; stages: of the first divergence; module: None where no
    single module is right.
    """

    id: str
    network: str
    kind: str
    places: tuple[tuple[str, str], ...]
    causes: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    module: str | None = None
    dtype: str = "float32"

    @property
    def title(self) -> str:
        """Return the class under which the tables count this edit."""
        if self.kind == "null":
            return "null"
        return self.causes[0] if len(self.causes) == 1 else "several"


def load() -> list[Edit]:
    """Read both files of edits; raise FaultError for an entry that cannot be right."""
    edits = [_from_verify(edit) for edit in verify_faults.load()]
    path = BENCHMARK / "faults.toml"
    with path.open("rb") as file:
        edits += [_edit(entry) for entry in tomllib.load(file)["edit"]]
    seen: set[str] = set()
    for edit in edits:
        if edit.id in seen:
            raise FaultError(f"{path}: the id {edit.id} occurs twice. Rename one of them.")
        seen.add(edit.id)
        _check(edit)
    return edits


def _from_verify(edit: verify_faults.Edit) -> Edit:
    return Edit(
        edit.id,
        edit.network,
        edit.kind,
        ((edit.find, edit.replace),),
        causes=(edit.cause,) if edit.cause else (),
        accept=edit.accept,
        stages=edit.stages,
        module=edit.module,
    )


def _edit(entry: dict[str, Any]) -> Edit:
    known = "id network kind find replace edits cause causes accept stage also module dtype".split()
    unknown = set(entry) - set(known)
    if unknown:
        raise FaultError(f"{entry.get('id')}: unknown fields {', '.join(sorted(unknown))}.")
    places = entry.get("edits") or [entry]
    cause = entry.get("cause")
    stage = entry.get("stage")
    return Edit(
        entry["id"],
        entry["network"],
        entry.get("kind", "fault"),
        tuple((place["find"], place["replace"]) for place in places),
        causes=tuple(entry.get("causes", (cause,) if cause else ())),
        accept=tuple(entry.get("accept", ())),
        stages=((stage,) if stage else ()) + tuple(entry.get("also", ())),
        module=entry.get("module"),
        dtype=entry.get("dtype", "float32"),
    )


def _check(edit: Edit) -> None:
    if edit.network not in CASES:
        raise FaultError(f"{edit.id}: there is no network {edit.network!r}.")
    if edit.kind not in ("fault", "null"):
        raise FaultError(f"{edit.id}: the kind is fault or null, not {edit.kind!r}.")
    is_fault = edit.kind == "fault"
    if is_fault != bool(edit.causes):
        raise FaultError(f"{edit.id}: a fault names its causes, a null rewrite has none.")
    if is_fault != bool(edit.stages) or not set(edit.stages) <= set(verify_faults.STAGES):
        raise FaultError(f"{edit.id}: {edit.stages} are not stages of verify for this kind.")
    if (edit.dtype == "bf16") != (edit.network in BFLOAT16):
        raise FaultError(f'{edit.id}: dtype = "bf16" belongs to the networks rounded to bfloat16.')


def write_case(network: str, folder: Path, edit: Edit | None = None) -> Path:
    """Copy a network's files into a new folder, edit its port there and return its case file."""
    source = CASES[network]
    shutil.copytree(source.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    case = folder / source.name
    if edit is not None:
        port = verify_faults.port_file(case)
        port.write_text(edited(port.read_text(), edit))
    return case


def edited(text: str, edit: Edit) -> str:
    """Return the port's source with the edit; raise FaultError unless each place fits once."""
    for find, replacement in edit.places:
        places = text.count(find)
        if places != 1:
            raise FaultError(f"{edit.id}: {find!r} occurs {places} times in the port, not once.")
        text = text.replace(find, replacement)
    return text

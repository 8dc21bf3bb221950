"""The networks of the benchmark and the edits of their ports, read from faults.toml."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tomllib

BENCHMARK = Path(__file__).resolve().parent
REPOSITORY = BENCHMARK.parents[1]

CASES = {
    "cnn": BENCHMARK / "networks/cnn/case.toml",
    "unet": BENCHMARK / "networks/unet/case.toml",
    "transformer": BENCHMARK / "networks/transformer/case.toml",
    "lstm_tagger": BENCHMARK / "networks/lstm_tagger/case.toml",
    "resnet50": REPOSITORY / "examples/resnet50/faithful.toml",
    "stepped": BENCHMARK / "networks/stepped/case.toml",
    "carried": BENCHMARK / "networks/carried/case.toml",
    "tied": BENCHMARK / "networks/tied/case.toml",
    "siamese": BENCHMARK / "networks/siamese/case.toml",
    "mixture": BENCHMARK / "networks/mixture/case.toml",
}
STAGES = ("parameters", "forward", "loss", "backward", "update", "training", "inference")


class FaultError(ValueError):
    """An entry of faults.toml that cannot be used."""


@dataclass(frozen=True)
class Edit:
    """One edit of one port, with the answer that isograd should give.

    `stage`, `cause` and `module` are None for a null rewrite; `module` is also None where no single
    module is right. `also` holds the stages that are as good an answer as `stage`,
    `accept` further causes that the edit has as well.
    """

    id: str
    network: str
    find: str
    replace: str
    kind: Literal["fault", "null"] = "fault"
    cause: str | None = None
    stage: str | None = None
    also: tuple[str, ...] = ()
    module: str | None = None
    accept: tuple[str, ...] = ()

    @property
    def stages(self) -> tuple[str, ...]:
        """Return every stage that is a right answer."""
        return () if self.stage is None else (self.stage, *self.also)


def load(path: Path = BENCHMARK / "faults.toml") -> list[Edit]:
    """Read and check the edits; raise FaultError for an entry that cannot be right."""
    with path.open("rb") as file:
        entries = tomllib.load(file)["edit"]
    lists = ("also", "accept")
    edits = [
        Edit(**{**entry, **{name: tuple(entry.get(name, ())) for name in lists}})
        for entry in entries
    ]
    seen = set()
    for edit in edits:
        if edit.id in seen:
            raise FaultError(f"{path}: the id {edit.id} occurs twice. Rename one of them.")
        seen.add(edit.id)
        if edit.network not in CASES:
            raise FaultError(f"{edit.id}: there is no network {edit.network!r}.")
        if edit.kind == "fault" and not edit.cause:
            raise FaultError(f"{edit.id}: a fault needs the cause that isograd should name.")
        if (edit.kind == "fault") != bool(edit.stages) or not set(edit.stages) <= set(STAGES):
            raise FaultError(f"{edit.id}: {edit.stages} are not stages of verify for this kind.")
    return edits


def port_file(case: Path) -> Path:
    """Return the source file of the port that a case file names."""
    with case.open("rb") as file:
        model = tomllib.load(file)["port"]["model"]
    return case.parent / model.rpartition(":")[0]


def write_case(network: str, folder: Path, edit: Edit | None = None) -> Path:
    """Copy a network's files into a new folder, edit its port there and return its case file."""
    source = CASES[network]
    shutil.copytree(source.parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    case = folder / source.name
    if edit is not None:
        port = port_file(case)
        port.write_text(edited(port.read_text(), edit))
    return case


def edited(text: str, edit: Edit) -> str:
    """Return the port's source with the edit; raise FaultError unless it fits exactly once."""
    places = text.count(edit.find)
    if places != 1:
        raise FaultError(f"{edit.id}: its text occurs {places} times in the port, not once.")
    return text.replace(edit.find, edit.replace)

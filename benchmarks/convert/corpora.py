"""The real code that the benchmark of convert converts, and its builders, by builders.toml."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import tomllib

from isograd.convert.verifying import Builder, parse_builder
from isograd.convert.verifying.places import Place

HERE = Path(__file__).resolve().parent
FOLDER = Path.home() / ".cache" / "isograd-benchmarks" / "convert"
WRAPPERS = FOLDER / "wrappers"
#: Where both sides find the builders that make a network shallower.
WRAPPED = Place((WRAPPERS, HERE))


@dataclass(frozen=True)
class Subject:
    """One builder with its inputs; why: what was made smaller or larger, and why.

    inputs: as `isograd convert --input` takes them.  replaced: arguments inside the network that
    make it shallower, by callable.
    """

    corpus: str
    builder: str
    inputs: tuple[str, ...]
    why: str = ""
    replaced: tuple[tuple[str, dict], ...] = ()

    @property
    def name(self) -> str:
        """A name that may be a file's."""
        return re.sub(r"\W+", "_", self.builder).strip("_")

    def source(self) -> Builder:
        """The builder, or one of its own that replaces the arguments."""
        if not self.replaced:
            return parse_builder(self.builder)
        return Builder(f"shrunk_{self.name}", "build")

    def write_source(self) -> None:
        """Write the builder that replaces arguments; both sides import it."""
        if not self.replaced:
            return
        made = parse_builder(self.builder)
        WRAPPERS.mkdir(parents=True, exist_ok=True)
        arguments = f"{made.module!r}, {made.name!r}, {dict(made.arguments)!r}"
        text = f"import shrinking\n\n\ndef build():\n    replaced = {dict(self.replaced)!r}\n"
        text += f"    return shrinking.build({arguments}, replaced)\n"
        (WRAPPERS / f"shrunk_{self.name}.py").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Corpus:
    """A package: where it comes from, which of its files are measured, and its builders.

    requirement: what pip downloads; empty for a package that lies beside this file.
    """

    name: str
    package: str
    requirement: str
    beside: tuple[str, ...]
    files: tuple[str, ...]
    replaced: dict[str, str]
    prelude: str
    subjects: tuple[Subject, ...]

    @property
    def original(self) -> Path:
        """The package as it was published."""
        return (FOLDER / f"src-{self.name}" if self.requirement else HERE) / self.package

    @property
    def subset(self) -> Path:
        """The files that are converted."""
        return FOLDER / f"subset-{self.name}" / self.package

    def place(self) -> Place:
        """Where the original is imported from."""
        preludes = (HERE / self.prelude,) if self.prelude else ()
        return Place((), ((self.package, self.original),), preludes)


def load() -> dict[str, Corpus]:
    """All corpora by name."""
    table = tomllib.loads((HERE / "builders.toml").read_text(encoding="utf-8"))
    return {name: _corpus(name, entry) for name, entry in table.items()}


def _corpus(name: str, entry: dict) -> Corpus:
    shrunk: dict[str, list[tuple[str, dict]]] = {}
    for part in entry.get("shrunk", []):
        for builder in part["builders"].split():
            shrunk.setdefault(builder, []).append((part["callable"], part["arguments"]))

    def subject(builder: str, part: dict) -> Subject:
        called = parse_builder(builder).name
        replaced = tuple(shrunk.get(called, ()))
        why = part.get("why", "depth" if replaced else "")
        edge = part.get("edge", entry.get("edge"))
        inputs = tuple(part.get("inputs", [f"2x3x{edge}x{edge}"]))
        return Subject(name, builder, inputs, why, replaced)

    plain = [subject(f"{entry['module']}:{b}", {}) for b in entry.get("builders", "").split()]
    special = [subject(part["builder"], part) for part in entry.get("special", [])]
    return Corpus(
        name,
        entry["package"],
        entry.get("requirement", ""),
        tuple(entry.get("beside", [])),
        tuple(entry["files"]),
        dict(entry.get("replaced", {})),
        entry.get("prelude", ""),
        (*plain, *special),
    )


def fetch(corpus: Corpus) -> None:
    """Download the package once, and write the files to be converted anew."""
    if not corpus.original.is_dir():
        _download(corpus)
    shutil.rmtree(corpus.subset.parent, ignore_errors=True)
    root = corpus.original.parent
    wanted = {path for pattern in corpus.files for path in root.glob(pattern) if path.is_file()}
    for path in sorted(wanted):
        target = corpus.subset.parent / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for name, text in corpus.replaced.items():
        target = corpus.subset.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _download(corpus: Corpus) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", corpus.requirement]
        subprocess.run(command, cwd=folder, check=True)
        (archive,) = Path(folder).iterdir()
        unpacked = Path(folder) / "unpacked"
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(unpacked)  # noqa: S202 - zipfile keeps to the folder
        else:
            with tarfile.open(archive) as opened:
                opened.extractall(unpacked, filter="data")
            (unpacked,) = unpacked.iterdir()
        corpus.original.parent.mkdir(parents=True, exist_ok=True)
        (unpacked / corpus.package).rename(corpus.original)

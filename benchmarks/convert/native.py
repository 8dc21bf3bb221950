"""How much of a port is MindSpore's own: uses of the runtime, and the lines that they bring.

python benchmarks/convert/native.py                      # all packages of builders.toml
python benchmarks/convert/native.py --corpora torchvision --names
python benchmarks/convert/native.py --path FOLDER        # any project

Native share: of the uses of torch that were rewritten, those that name nothing of the generated
module.  Lines of a family: what the generated module would hold if the family's file and the
network code that it reaches (functions, classes and constants of models, ops and layers, by name)
were all that is converted: transforms of images, which the metadata of weights name, are left out.
Beside it what all files would take that it imports, used or not.
"""

import argparse
import ast
import collections
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE)]

import corpora  # noqa: E402
import measuring  # noqa: E402
from reached import Reach, imported_files, runtime_names  # noqa: E402

from isograd.convert.lone_layers import module_of  # noqa: E402
from isograd.convert.output import GENERATED  # noqa: E402

#: Layers that MindSpore has: their torch-shaped runtime classes are in no port.
LAYERS = frozenset(
    """Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d
    BatchNorm3d Linear Embedding LayerNorm GroupNorm MaxPool1d MaxPool2d MaxPool3d AvgPool1d
    AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d
    AdaptiveMaxPool2d ReLU ReLU6 SiLU Sigmoid Tanh GELU Hardswish Hardsigmoid LeakyReLU ELU Mish
    PReLU Softmax LogSoftmax Dropout Identity Flatten Sequential ModuleList ModuleDict
    Module""".split()
)


@dataclass
class Port:
    """A converted tree: its rewritten uses, and what of the runtime each file names.

    derived: names of other modules from which its classes derive.
    """

    root: Path
    converted: int
    by_file: dict[Path, collections.Counter[str]] = field(default_factory=dict)
    imports: dict[Path, set[Path]] = field(default_factory=dict)
    reach: Reach = field(default_factory=Reach)
    derived: set[str] = field(default_factory=set)

    @property
    def runtime(self) -> collections.Counter[str]:
        """Uses of the runtime by name."""
        return sum(self.by_file.values(), collections.Counter())

    @property
    def share(self) -> float:
        """The native share of rewritten uses."""
        return 1 - self.runtime.total() / max(self.converted, 1)

    def needed(self, file: Path) -> set[Path]:
        """A file and the files of the port that it imports, directly or not."""
        found, waiting = set(), [file]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.imports.get(one, ())
        return found

    def of_files(self, files: set[Path]) -> set[str]:
        """The names of the runtime in these files."""
        return set().union(*(self.by_file[file] for file in files if file in self.by_file))


def lines_of(names: set[str], derived: set[str]) -> int:
    """Lines of a generated module with these names; 0 where there is none.

    derived: names from which the port's classes derive.  What marks the lines that are left to
    finish goes away with them, and does not count.
    """
    kept = names - {"unconverted"}
    return len(module_of(kept, derived).splitlines()) if kept else 0


def convert(source: Path, out: Path) -> Port:
    """Convert a tree and read what of the runtime the port names."""
    report = out.with_suffix(".json")
    command = [sys.executable, "-m", "isograd", "convert", str(source), "-o", str(out), "--force"]
    subprocess.run([*command, "--json", str(report), "--quiet"], check=False, env=measuring.OWN)
    port = Port(out, json.loads(report.read_text(encoding="utf-8"))["converted"])
    files = [out] if out.is_file() else sorted(out.rglob("*.py"))
    for file in files:
        if file.stem != GENERATED:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            port.by_file[file] = collections.Counter(runtime_names(tree))
            port.imports[file] = set(imported_files(tree, file, out))
            port.reach.add(tree, file, out)
            bases = (n.bases for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
            port.derived |= {base.attr for of in bases for base in of if hasattr(base, "attr")}
    return port


def families(corpus: corpora.Corpus, port: Port) -> Iterator[tuple[str, Path]]:
    """Each file that defines a builder of the table, by its name."""
    wanted = {subject.builder.partition(":")[2].partition("(")[0] for subject in corpus.subjects}
    for file in sorted(port.by_file):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        defined = {
            node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        if wanted & defined:
            yield file.stem, file


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = corpora.load()
    parser.add_argument("--corpora", nargs="+", choices=list(known), default=list(known))
    parser.add_argument("--path", type=Path, help="a project instead of the packages")
    parser.add_argument("--names", action="store_true", help="the runtime's names by their uses")
    arguments = parser.parse_args()
    subjects = (
        {"project": (None, arguments.path)}
        if arguments.path
        else {name: (known[name], known[name].subset) for name in arguments.corpora}
    )
    print(
        "| port | uses rewritten | native | lines of the family: median | most | runtime layers |"
    )
    print("|---|---|---|---|---|---|")
    for name, (corpus, source) in subjects.items():
        if corpus is not None:
            corpora.fetch(corpus)
        out = corpora.FOLDER / f"native-{name}" / source.name
        out.parent.mkdir(parents=True, exist_ok=True)
        port = convert(source, out)
        lines = _lines(corpus, port)
        counts = [own for own, _, _ in lines.values()] or [0]
        layers = sum(port.runtime[layer] for layer in LAYERS)
        print(
            f"| {name} | {port.converted} | {port.share:.1%} | {statistics.median(counts):.0f} "
            f"| {max(counts)} | {layers} |"
        )
        for family, (own, whole, names) in sorted(lines.items(), key=lambda item: item[1][:2]):
            said = " ".join(sorted(names)) if arguments.names else ""
            print(f"|   {family} | | | {own} | {whole} with all that it imports | {said} |")
        if arguments.names:
            for used, count in port.runtime.most_common():
                files = sorted({f.name for f, c in port.by_file.items() if used in c})
                print(f"{count:5} {used}: {', '.join(files[:6])}")
    return 0


def _lines(
    corpus: corpora.Corpus | None, port: Port
) -> dict[str, tuple[int, int, collections.Counter[str]]]:
    """Runtime lines by family: of what it reaches, and of everything that it imports."""
    if corpus is None:
        lines = lines_of(port.of_files(set(port.by_file)), port.derived)
        return {port.root.name: (lines, lines, port.runtime)}
    found = {}
    for family, file in families(corpus, port):
        network = {
            one
            for one in port.by_file
            if file.parent in one.parents or {"ops", "layers"} & set(one.parent.parts)
        }
        reached = port.reach.names(file, network)
        whole = lines_of(port.of_files(port.needed(file)), port.derived)
        found[family] = lines_of(set(reached), port.derived), whole, reached
    return found


if __name__ == "__main__":
    sys.exit(main())

"""Convert the training scripts of examples/training, run both sides from the same weights, compare.

python benchmarks/convert/training.py                    # all; minutes on an idle machine
python benchmarks/convert/training.py --only gan --small # a few steps
python benchmarks/convert/training.py --no-verify        # the scripts alone

Every printed number is compared but times.  Rounding grows in a training: how fast is measured by
further runs, the original again from weights that differ in their last bits.  One such run is not
enough: a number that lies within rounding of the kink of a leaky ReLU falls on either side of it.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPTS = ROOT / "examples" / "training"

#: Runs a port where torch cannot be imported; what is not compiled, one operator after the other.
RUNNER = """
import runpy, sys
sys.modules["torch"] = None
import mindspore
mindspore.set_context(pynative_synchronize=True)
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
#: Weights whose last bits differ.
NUDGE = """
import sys, torch
generator = torch.Generator().manual_seed(int(sys.argv[1]))
for path in sys.argv[2:]:
    state = torch.load(path)
    for value in state.values():
        if value.is_floating_point():
            value.mul_(1 + 6e-8 * torch.randn(value.shape, generator=generator).sign())
    torch.save(state, path.replace(".pth", ".nudged.pth"))
"""
#: Further runs of the original; of a few steps, where the port is further away than the limits.
NUDGES, SMALL_NUDGES = 6, 2
#: Differences that need no explanation by rounding: of the first ten lines of numbers, of all.
EARLY, LATE = 1e-5, 1e-4
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]\d+)?(?![\w.])")
TIMES = re.compile(r"(Time|Data)\s+[\d.]+ \([\s\d.]+\)|ms\s+[\d.]+")


@dataclass(frozen=True)
class Script:
    """A script: its options, small ones, and its weights by option."""

    name: str
    arguments: tuple[str, ...]
    small: tuple[str, ...]
    save: tuple[str, ...]
    weights: dict[str, str]


SAVE = ("--save-init", "init.pth")
CLASSIFY = ("--no-shuffle", "--seed", "1", "--folder", ".")
RATE = ("--lr", "0.02")
LITTLE = ("--samples", "48", "-b", "8", "--size", "16", "-a", "4", "--epochs", "1", *RATE)
ALL = (
    Script(
        "classification",
        (*CLASSIFY, "--samples", "320", "--epochs", "2", *RATE),
        (*CLASSIFY, *LITTLE),
        SAVE,
        {"--init": "init.pth"},
    ),
    Script(
        "classification",
        (*CLASSIFY, "--samples", "160", "--epochs", "4", "--schedule", "cosine", "--amp", *RATE),
        (*CLASSIFY, *LITTLE, "--schedule", "cosine", "--label-smoothing", "0.1"),
        SAVE,
        {"--init": "init.pth"},
    ),
    Script("language_model", (), ("--epochs", "1", "--bptt", "40"), SAVE, {"--init": "init.pth"}),
    Script(
        "language_model",
        ("--tied", "--accumulate", "1"),
        ("--epochs", "1", "--bptt", "60", "--tied", "--accumulate", "1"),
        SAVE,
        {"--init": "init.pth"},
    ),
    Script(
        "segmentation",
        (),
        ("--samples", "32", "--size", "16", "--epochs", "3", "-b", "4"),
        SAVE,
        {"--init": "init.pth"},
    ),
    Script(
        "fine_tuning",
        (),
        ("--samples", "64", "--length", "8", "--epochs", "3"),
        SAVE,
        {"--init": "init.pth"},
    ),
    Script(
        "gan",
        ("--niter", "3"),
        ("--niter", "1", "--samples", "64"),
        ("--save-init", "."),
        {"--netG": "netG.pth", "--netD": "netD.pth"},
    ),
)


@dataclass(frozen=True)
class Row:
    """A script's conversion and its runs.

    steps: compiled functions of the port.  numbers: compared; early, late: greatest difference
    among the first ten lines of numbers and among all, over the greater of the value and 1;
    drift_early, drift_late: the same of the nudged originals, the greatest.
    """

    name: str
    arguments: str
    uses: int = 0
    converted: int = 0
    left: int = 0
    steps: int = 0
    numbers: int = 0
    early: float = 0.0
    late: float = 0.0
    drift_early: float = 0.0
    drift_late: float = 0.0
    elapsed_s: float = 0.0
    failure: str = ""

    @property
    def follows(self) -> bool:
        """Whether the port goes the original's way, as closely as rounding lets it."""
        near = self.early <= max(EARLY, 10 * self.drift_early)
        return not self.failure and near and self.late <= max(LATE, 10 * self.drift_late)


@dataclass
class Work:
    """A folder for one script's runs."""

    folder: Path
    tail: list[str] = field(default_factory=list)

    def run(self, *command: str) -> str:
        """Standard output of a command.  Raises RuntimeError with its last words where it fails."""
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            words = " ".join((done.stderr or done.stdout).split()[-40:])
            raise RuntimeError(f"{Path(command[0]).name} ended with {done.returncode}: {words}")
        return done.stdout


def isograd(*arguments: str) -> tuple[str, ...]:
    """isograd's command line in this interpreter."""
    return (sys.executable, "-c", "from isograd.cli import main; main()", *arguments)


def lines_of(output: str) -> list[list[float]]:
    """The numbers of each line that has any, times left out."""
    found = [[float(n) for n in NUMBER.findall(TIMES.sub("", line))] for line in _told(output)]
    return [numbers for numbers in found if numbers]


def _told(output: str) -> list[str]:
    return [line for line in output.splitlines() if "[WARNING]" not in line and "=" not in line]


def difference(ours: list[list[float]], theirs: list[list[float]]) -> float:
    """The greatest difference of two runs; infinite where they say different things."""
    if [len(line) for line in ours] != [len(line) for line in theirs] or not ours:
        return float("inf")
    pairs = [p for a, b in zip(ours, theirs, strict=True) for p in zip(a, b, strict=True)]
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)


def convert(work: Work) -> dict[str, dict[str, int]]:
    """Convert all scripts; the counts by file."""
    answer = work.folder / "convert.json"
    command = isograd("convert", str(SCRIPTS), "-o", "port", "--json", str(answer), "--quiet")
    subprocess.run(command, cwd=work.folder, capture_output=True, check=False)
    found = json.loads(answer.read_text(encoding="utf-8"))
    left = [item for item in found["findings"] if item.get("level", "finish") == "finish"]
    return {
        item["file"]: {
            "uses": item["uses"],
            "converted": item["converted"],
            "left": sum(finding["file"] == item["file"] for finding in left),
            "steps": (work.folder / "port" / item["file"]).read_text("utf-8").count("@ms.jit"),
        }
        for item in found["files"]
    }


def compare(script: Script, ports: Path, counts: dict[str, int], *, small: bool) -> Row:
    """Run original and port, and the original from nudged weights.

    small: without the nudged runs where original and port agree without them.
    """
    arguments = script.small if small else script.arguments
    row = Row(script.name, " ".join(arguments), **counts)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder))
        path = str(SCRIPTS / f"{script.name}.py")
        try:
            theirs = lines_of(work.run(sys.executable, path, *arguments, *script.save))
            for file in script.weights.values():
                work.run(*isograd("weights", file, "-o", file.replace(".pth", ".ckpt")))
            port = str(ports / f"{script.name}.py")
            own = options(script, ".ckpt")
            ours = lines_of(work.run(sys.executable, "-c", RUNNER, port, *arguments, *own))
            early, late = difference(ours[:10], theirs[:10]), difference(ours, theirs)
            count = SMALL_NUDGES if small else NUDGES
            seeds = range(0 if small and early <= EARLY and late <= LATE else count)
            nudged = [_nudged(work, script, path, seed, arguments) for seed in seeds]
        except RuntimeError as error:
            return Row(**{**asdict(row), "failure": str(error)})
    return Row(
        **{
            **asdict(row),
            "numbers": sum(len(line) for line in theirs),
            "early": early,
            "late": late,
            "drift_early": max((difference(n[:10], theirs[:10]) for n in nudged), default=0.0),
            "drift_late": max((difference(n, theirs) for n in nudged), default=0.0),
            "elapsed_s": time.perf_counter() - begun,
        }
    )


def _nudged(
    work: Work, script: Script, path: str, seed: int, arguments: tuple[str, ...]
) -> list[list[float]]:
    work.run(sys.executable, "-c", NUDGE, str(seed), *script.weights.values())
    return lines_of(work.run(sys.executable, path, *arguments, *options(script, ".nudged.pth")))


def options(script: Script, suffix: str) -> list[str]:
    """The options that name a script's weights, in files with this suffix."""
    pairs = script.weights.items()
    return [part for option, file in pairs for part in (option, file.replace(".pth", suffix))]


CASE = """
[reference]
framework = "torch"
model = "{original}/networks.py:{model}"
loss = "{original}/networks.py:{loss}"
optimizer = "{original}/networks.py:{optimizer}"

[port]
framework = "mindspore"
model = "{port}/networks.py:{model}"
loss = "{port}/networks.py:{loss}"
optimizer = "{port}/networks.py:{optimizer}"

[[inputs]]
{input}
{targets}
[verify]
steps = 5
compiled = "off"
"""
IMAGES = 'shape = [4, 3, 32, 32]\ndtype = "float32"\nfill = "normal"'
LATENT = 'shape = [4, 16, 1, 1]\ndtype = "float32"\nfill = "normal"'
WORDS = 'shape = [2, 12]\ndtype = "int64"\nfill = "integers"\nlow = 0\nhigh = 20'
CLASSES = 'shape = [4]\ndtype = "int64"\nfill = "integers"\nlow = 0\nhigh = 10'
SHARES = 'shape = [4]\ndtype = "float32"\nfill = "uniform"'
#: Network, optimizer, input, target.
NETWORKS = (
    ("classifier", "classifier_optimizer", IMAGES, CLASSES),
    ("language_model", "language_model_optimizer", WORDS, WORDS),
    ("generator", "gan_optimizer", LATENT, ""),
    ("discriminator", "gan_optimizer", IMAGES, SHARES),
)


def verify(ports: Path, folder: Path, only: re.Pattern[str]) -> list[dict[str, str]]:
    """`isograd verify` of each network with its loss and optimizer, five steps."""
    found = []
    for name, optimizer, given, target in NETWORKS:
        if not only.search(name):
            continue
        text = CASE.format(
            original=SCRIPTS,
            port=ports,
            model=name,
            loss=f"{name}_loss",
            optimizer=optimizer,
            input=given,
            targets=f"\n[[targets]]\n{target}\n" if target else "",
        )
        case, answer = folder / f"{name}.toml", folder / f"{name}.json"
        case.write_text(text, encoding="utf-8")
        done = subprocess.run(
            isograd("verify", str(case), "--json", str(answer)),
            capture_output=True,
            text=True,
            check=False,
        )
        verdict = "failed: " + " ".join(done.stderr.split()[-30:])
        if answer.is_file():
            read = json.loads(answer.read_text(encoding="utf-8"))
            stages = {stage["stage"]: stage["verdict"] for stage in read["stages"]}
            verdict = f"{read['verdict']} (training: {stages.get('training')})"
        found.append({"network": name, "verdict": verdict})
    return found


def table(rows: list[Row], verdicts: list[dict[str, str]]) -> str:
    """Both tables as text."""
    lines = [
        f"{'script':<16}{'uses':>5}{'left':>5}{'steps':>6}{'numbers':>9}{'first 10':>10}{'all':>10}"
        f"{'nudged 10':>11}{'nudged':>10}{'s':>7}  follows"
    ]
    lines += [
        f"{row.name:<16}{row.uses:>5}{row.left:>5}{row.steps:>6}{row.numbers:>9}{row.early:>10.1e}"
        f"{row.late:>10.1e}{row.drift_early:>11.1e}{row.drift_late:>10.1e}"
        f"{row.elapsed_s:>7.0f}  {row.failure or ('yes' if row.follows else 'NO')}"
        for row in rows
    ]
    lines += [f"verify {item['network']:<20}{item['verdict']}" for item in verdicts]
    return "\n".join(lines)


def main() -> int:
    """Returns 0 where every port follows its original."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="scripts and networks whose name has this")
    parser.add_argument("--small", action="store_true", help="few steps on small networks")
    parser.add_argument("--no-verify", action="store_true")
    parser.add_argument("--no-scripts", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    only = re.compile(options.only)
    with tempfile.TemporaryDirectory() as folder:
        work = Work(Path(folder))
        counts = convert(work)
        ports = work.folder / "port"
        rows = []
        for script in ALL:
            if only.search(script.name) and not options.no_scripts:
                own = counts[f"{script.name}.py"]
                rows.append(compare(script, ports, own, small=options.small))
                print(table(rows[-1:], []).splitlines()[-1], file=sys.stderr, flush=True)
        verdicts = [] if options.no_verify else verify(ports, work.folder, only)
    print(table(rows, verdicts))
    if options.json:
        answer = {"scripts": [asdict(row) for row in rows], "networks": verdicts}
        options.json.write_text(json.dumps(answer, indent=1), encoding="utf-8")
    is_good = all(row.follows and not row.left and row.steps for row in rows)
    return 0 if is_good and all("equivalent" in item["verdict"] for item in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())

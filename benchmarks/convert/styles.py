"""Ten styles of well-known training scripts and the five examples, converted and run compiled.

python benchmarks/convert/styles.py [--only cifar gan] [--rounds 3] [--steps 20] [--out FILE.json]

The scripts of styles/ keep the form of the code that they are named after, on data made up here;
the five examples are those of examples/training.  Each is converted with no edit; original and
port start from the same weights, and their losses are compared.  styles/native/ has the same
trainings written by hand for MindSpore with one `@ms.jit` step: port and native
script take turns, from one call of a compiled function to the next, and the time in these functions
is compared, all calls but the first two of each: what else the machine does falls on both.  The
work of a call is the same each time and what else happens only adds to it (on a virtual machine a
median is up to twice the least, whichever the script is): a function's time is its fastest tenth
over all rounds, each setting of its switches (`update=True`) for itself.  Prints a table.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

import training  # noqa: E402

STYLES = HERE / "styles"
#: Each by its options: the styles by none, the examples by the first of `training.ALL`.
SCRIPTS = {
    path.stem: training.Script(path.stem, (), (), training.SAVE, {"--init": "init.pth"})
    for path in sorted(STYLES.glob("*.py"))
} | {script.name: script for script in reversed(training.ALL)}
#: The numbers that stand behind the word loss.
LOSS = re.compile(r"loss(?:_[a-z])?\W{1,3}(-?\d+\.\d+(?:e[+-]\d+)?)", re.IGNORECASE)
#: Losses of which the port's first ones have to be the original's: rounding has not grown yet.
FIRST = 10

#: Runs a script where torch cannot be imported; counts and times what it compiles.
RUNNER = """
import atexit, functools, json, os, runpy, sys, time
sys.modules["torch"] = None
answer, most, mine, other = sys.argv[1], *map(int, sys.argv[2:5])
sys.argv = sys.argv[5:]

def give_turn():  # the other one may have ended: then its pipe is closed
    try:
        os.write(other, b".")
    except BrokenPipeError:
        pass

def wait_for(result):  # as a script waits: it reads a number, which leaves the processors alone
    for one in result if isinstance(result, tuple) else [result]:
        if isinstance(one, ms.Tensor) and one.size == 1:
            one.asnumpy()
    ms.runtime.synchronize()  # spins: beside the step it would take a processor from it

def take_turn():  # an ended one needs no turn: nothing is read
    os.read(mine, 1)

take_turn()
import mindspore as ms
from mindspore.common import api
ms.runtime.launch_blocking()
plain, seen = ms.jit, []

def jit(function=None, **options):
    if function is None:
        return lambda given: jit(given, **options)
    compiled = plain(function, **options)
    if function.__module__ != "__main__":  # the runtime's: an evaluation, and no step
        return compiled
    calls, made = {}, []
    seen.append((calls, made, function.__name__))

    @functools.wraps(function)
    def call(*inputs, **named):
        graphs, begun = len(api.ms_compile_cache), time.perf_counter()
        result = compiled(*inputs, **named)
        wait_for(result)
        switches = str([one for one in (*inputs, *named.values()) if isinstance(one, bool)])
        calls.setdefault(switches, []).append(time.perf_counter() - begun)
        count = sum(map(len, calls.values()))
        if len(api.ms_compile_cache) > graphs:
            made.append(count)
        if most and count > most:
            raise SystemExit
        give_turn()
        take_turn()
        return result

    return call

def told():
    with open(answer, "w") as file:
        called = [one for one in seen if one[0]]
        compiled = [(n, made, sum(map(len, calls.values()))) for calls, made, n in called]
        times = [times for calls, _, _ in called for _, times in sorted(calls.items())]
        graphs = sum(len(made) for _, made, _ in compiled)
        json.dump({"graphs": graphs, "times": times, "made": compiled}, file)

ms.jit = jit
atexit.register(told)
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass
class Row:
    """What became of a script.

    eager: why its training stays eager.  steps: compiled functions that train, no evaluations.
    graphs: their compilations in all.
    again: the calls that compiled a function once more, with their numbers; overdue: how many of
    them are in the second half of all, where each kind of batch has been seen.
    early, late: greatest relative difference of the first losses and of all; drift_early,
    drift_late: the same of the original from weights that differ in their last bits, where the port
    is further away than 1e-5.  ratio: time in the port's compiled functions to that in the native
    script's, each by its fastest tenth of all rounds; the port begins in every other one.
    ratios: of each round alone.
    """

    name: str
    lines: int = 0
    eager: str = ""
    steps: int = 0
    graphs: int = 0
    again: list[str] = field(default_factory=list)
    overdue: int = 0
    losses: int = 0
    early: float = 0.0
    late: float = 0.0
    drift_early: float = 0.0
    drift_late: float = 0.0
    port_ms: float = 0.0
    native_ms: float = 0.0
    ratio: float = 0.0
    failure: str = ""
    ratios: list[float] = field(default_factory=list)

    @property
    def follows(self) -> bool:
        """Whether the port goes the original's way, as closely as rounding lets it."""
        near = self.early <= max(training.EARLY, 10 * self.drift_early)
        return near and self.late <= max(training.LATE, 10 * self.drift_late)


def environment() -> dict[str, str]:
    """What the scripts are run with."""
    own = {"ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **own, "GLOG_v": "3", "PYTHONPATH": str(ROOT / "src")}


def run(folder: Path, *command: str) -> str:
    """What a command prints, on both streams.  Raises RuntimeError where it fails."""
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(" ".join((done.stderr or done.stdout).split()[-40:]))
    return done.stdout + done.stderr


def isograd(folder: Path, *arguments: str) -> None:
    """isograd's command line in this interpreter; a status of 1 says that findings are left."""
    done = subprocess.run(
        training.isograd(*arguments), cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-400:])


def losses_of(output: str) -> list[float]:
    """The losses that a script prints."""
    return [float(number) for number in LOSS.findall(output)]


def original_of(name: str) -> Path:
    """The script in torch."""
    own = STYLES / f"{name}.py"
    return own if own.is_file() else training.SCRIPTS / own.name


def convert(row: Row, folder: Path) -> Path:
    """Convert a script; its port."""
    original = original_of(row.name)
    row.lines = len(original.read_text(encoding="utf-8").splitlines())
    isograd(folder, "convert", str(original), "-o", "port", "--json", "convert.json", "--quiet")
    found = json.loads((folder / "convert.json").read_text(encoding="utf-8"))["findings"]
    reasons = [f"line {f['line']}: {f['message']}" for f in found if f["code"] == "eager-training"]
    row.eager = "; ".join(reasons)
    port = folder / "port"
    return port / original.name if port.is_dir() else port


def apart(ours: list[float], theirs: list[float]) -> tuple[float, float]:
    """The greatest relative difference of the first losses, and of all that both have."""
    found = [abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs, strict=False)]
    return max(found[:FIRST]), max(found)


def compare(
    row: Row, folder: Path, script: training.Script, theirs: list[float], ours: list[float]
) -> None:
    """How far the port's losses are from the original's, and the nudged original's."""
    if not ours:
        raise RuntimeError("the port prints no loss")
    row.losses = len(ours)
    row.early, row.late = apart(ours, theirs)
    if row.early <= training.EARLY:
        return
    command = [sys.executable, str(original_of(row.name)), *script.arguments]
    nudged = training.options(script, ".nudged.pth")
    for seed in range(training.SMALL_NUDGES):
        run(folder, sys.executable, "-c", training.NUDGE, str(seed), *script.weights.values())
        printed = run(folder, *command, *nudged)
        early, late = apart(losses_of(printed)[: row.losses], theirs)
        row.drift_early, row.drift_late = max(row.drift_early, early), max(row.drift_late, late)


def in_turns(
    folder: Path, scripts: list[Path], options: list[str], most: int
) -> list[tuple[list[float], dict]]:
    """The losses of two MindSpore scripts with the same options, and what they compiled.

    Each waits for a byte of the other, which it gives after each call of a compiled function.
    """
    pipes = [os.pipe() for _ in scripts]
    running = []
    for number, script in enumerate(scripts):
        ends = pipes[number][0], pipes[1 - number][1]
        given = [str(folder / f"answer.{number}"), str(most), *map(str, ends), str(script)]
        with (
            (folder / f"out.{number}").open("w") as out,
            (folder / f"err.{number}").open("w") as err,
        ):
            process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, *given, *options], cwd=folder,
                env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=ends,
            )  # fmt: skip
        running.append(process)
    os.write(pipes[0][1], b".")
    for end in (*pipes[0], *pipes[1]):
        os.close(end)
    codes = [process.wait() for process in running]
    found = []
    for number, code in enumerate(codes):
        printed, told = ((folder / f"{name}.{number}").read_text() for name in ("out", "err"))
        if code:
            raise RuntimeError(" ".join((told or printed).split()[-40:]))
        answer = json.loads((folder / f"answer.{number}").read_text(encoding="utf-8"))
        found.append((losses_of(printed + told), answer))
    return found


def seconds(rounds: list[list[list[float]]]) -> float:
    """The time of a round's calls, each by its function's fastest tenth over the rounds.

    rounds: for each round, for each function and setting, the time of each call in seconds.
    """
    total = 0.0
    for functions in zip(*rounds, strict=True):
        steady = sorted(time for times in functions for time in (times[2:] or times))
        total += steady[len(steady) // 10] * len(functions[0])
    return total


def note_compilations(row: Row, made: list[tuple[str, list[int], int]]) -> None:
    """Which calls compiled a function that had been compiled.

    made: functions by name, the numbers of the calls that compiled them, and of all their calls.
    """
    again = [(name, calls[1:], count) for name, calls, count in made if calls[1:]]
    row.again = [f"{name} at {', '.join(map(str, calls))} of {n}" for name, calls, n in again]
    row.overdue = sum(call > count / 2 for _, calls, count in again for call in calls)


def measure(row: Row, rounds: int, most: int) -> None:
    """Run original, port and native script."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        port, script = convert(row, folder), SCRIPTS[row.name]
        original = [sys.executable, str(original_of(row.name)), *script.arguments]
        theirs = losses_of(run(folder, *original, *script.save))
        for file in script.weights.values():
            isograd(folder, "weights", file, "-o", file.replace(".pth", ".ckpt"))
        options = [*script.arguments, *training.options(script, ".ckpt")]
        native = STYLES / "native" / f"{row.name}.py"
        times: dict[Path, list[list[list[float]]]] = {port: [], native: []}
        for number in range(rounds):
            pair = [port, native] if number % 2 == 0 else [native, port]
            found = dict(zip(pair, in_turns(folder, pair, options, most), strict=True))
            (ours, port_said), (_, native_said) = found[port], found[native]
            if not most and len(ours) != len(theirs):
                raise RuntimeError(
                    f"the original prints {len(theirs)} losses, the port {len(ours)}"
                )
            row.steps, row.graphs = len(port_said["made"]), port_said["graphs"]
            note_compilations(row, port_said["made"])
            if not row.steps:
                break
            calls = max(count for _, _, count in native_said["made"])
            times[port].append(port_said["times"])
            times[native].append(native_said["times"])
            row.ratios.append(seconds([port_said["times"]]) / seconds([native_said["times"]]))
            row.port_ms, row.native_ms = (1e3 * seconds(times[one]) / calls for one in times)
        compare(row, folder, script, theirs, ours)
        row.ratio = row.port_ms / row.native_ms if row.ratios else 0.0


def line_of(row: Row) -> str:
    """A row of the table."""
    if row.failure:
        return f"| {row.name} | {row.lines} | failed: {row.failure} | | | | | |"
    how = row.eager or f"{row.steps} ({row.graphs}){''.join(f'; {one}' for one in row.again)}"
    drift = [f" ({drift:.0e})" if drift else "" for drift in (row.drift_early, row.drift_late)]
    return (
        f"| {row.name} | {row.lines} | {how} | {row.losses} | {row.early:.0e}{drift[0]} "
        f"| {row.late:.0e}{drift[1]} "
        f"| {row.port_ms:.1f} and {row.native_ms:.1f} | {row.ratio:.2f} |"
    )


def holds(row: Row) -> bool:
    """Whether a training is compiled, never late again, and follows its original."""
    return bool(row.steps) and not row.failure and not row.overdue and row.follows


def main() -> int:
    """Print the table; 0 where every training holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many (default: none)")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    given = parser.parse_args()
    print(
        "| style | lines | compiled (graphs); compiled again | losses | first ten (nudged) "
        "| all (nudged) | ms a step | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for name in given.only:
        rows.append(Row(name))
        try:
            measure(rows[-1], given.rounds, given.steps)
        except RuntimeError as error:
            rows[-1].failure = str(error)
        print(line_of(rows[-1]), flush=True)
        if given.out:
            text = json.dumps([asdict(row) for row in rows], indent=1)
            given.out.write_text(text, encoding="utf-8")
    return 0 if all(map(holds, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())

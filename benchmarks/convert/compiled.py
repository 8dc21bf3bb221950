"""Do the ports compile?  Forward and gradients under `jit` against the same port eagerly.

python benchmarks/convert/compiled.py --families --out rows.jsonl      # one builder per family
python benchmarks/convert/compiled.py --only "vit|swin"
python benchmarks/convert/compiled.py --random 100 --corpora           # random networks alone
python benchmarks/convert/compiled.py --sample                         # two builders, two networks

Each port runs in a process of its own: eagerly, then its forward pass and its gradients compiled
with capture_mode ast, from the same weights.  Same: the loss within 1e-4 of the size of its terms,
every gradient within 2e-3 of its norm, none zero in the compiled run alone.  Outputs that are drawn
anew in each run are left out.  A builder with a row of this commit in --out is not run again.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
RANDOM = HERE.parent / "verify" / "random_networks"
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE)]

import corpora  # noqa: E402
import measuring  # noqa: E402
import run as verified  # noqa: E402
import tables  # noqa: E402

from isograd.convert.run import convert_path  # noqa: E402
from isograd.convert.verifying import parse_input  # noqa: E402
from isograd.convert.verifying.places import Place  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHILD = HERE / "_compiled_child.py"
OUTCOMES = ("same", "differs", "refused", "error")


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="*", default=["torchvision", "timm", "efficientnet"])
    parser.add_argument("--only", default="", metavar="PATTERN", help="builders that match this")
    parser.add_argument("--families", action="store_true", help="the first builder of each family")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="random networks")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="of the first network")
    parser.add_argument("--sample", action="store_true", help="a few of each: a minute")
    parser.add_argument("--timeout", type=int, default=900, metavar="SECONDS")
    parser.add_argument("--kept", action="store_true", help="take the ports of the last run")
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="a line for each port")
    return parser.parse_args(argv)


def settings_of(place: Place, module: str, name: str, arguments: str, inputs: list) -> dict:
    """What the child reads."""
    return {
        "module": module,
        "name": name,
        "arguments": arguments,
        "search": [str(path) for path in place.search],
        "packages": {name: str(path) for name, path in place.packages},
        "preludes": [str(path) for path in place.preludes],
        "forbidden": ["torch"],
        "inputs": inputs,
    }


def answer_of(settings: dict, timeout: int) -> dict:
    """One port in a process of its own; what the compiler writes goes to a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "side.json"
        file.write_text(json.dumps(settings), encoding="utf-8")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOG_v": "4"}
        try:
            done = subprocess.run(
                [sys.executable, str(CHILD), str(file)],
                cwd=folder, capture_output=True, text=True, errors="replace",
                timeout=timeout, check=False, env=environment,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"outcome": "error", "reason": f"no answer within {timeout} s"}
        try:
            return json.loads(done.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            return {"outcome": "error", "reason": f"ended with {done.returncode}: {last[:200]}"}


def builders(arguments: argparse.Namespace) -> list[tuple[corpora.Subject, corpora.Corpus]]:
    """The chosen builders."""
    known, seen, found = corpora.load(), set(), []
    for name in arguments.corpora:
        for subject in known[name].subjects:
            called = subject.builder.partition(":")[2]
            family = (name, re.match(r"[A-Za-z]+", called)[0])
            if not re.search(arguments.only, subject.builder):
                continue
            if arguments.families and family in seen:
                continue
            seen.add(family)
            found.append((subject, known[name]))
    return found


def run_builders(arguments: argparse.Namespace, report) -> None:
    """Convert the packages, and run each chosen builder."""
    known, chosen = corpora.load(), builders(arguments)
    wanted = {corpus.name: corpus for _, corpus in chosen}
    for corpus in list(wanted.values()):
        wanted.update({name: known[name] for name in corpus.beside})
    for corpus in wanted.values():
        if arguments.kept and verified.port_of(corpus).is_dir():
            continue
        corpora.fetch(corpus)
        measuring.convert(corpus.name, corpus.subset, verified.port_of(corpus))
    for subject, corpus in chosen:
        subject.write_source()
        made = subject.source()
        given = [parse_input(text) for text in subject.inputs]
        inputs = [[list(one.shape), one.dtype, one.high or 0] for one in given]
        place = verified.port_place(corpus, known)
        text = repr(dict(made.arguments))
        settings = settings_of(place, made.module, made.name, text, inputs)
        report(subject.corpus, subject.builder, settings)


def run_random(arguments: argparse.Namespace, report) -> None:
    """Draw networks, port each by `convert`, and run the ports."""
    sys.path.insert(0, str(RANDOM))  # its own `training` comes before that of this folder
    from generate import Generator  # it imports torch

    for seed in range(arguments.first, arguments.first + arguments.random):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            network = Generator(seed, native_only=seed % 3 == 0).network()
            network.write(Path(folder))
            convert_path(Path(folder) / "net.py", Path(folder) / "port")
            inputs = []
            for name in network.inputs:
                fill = tomllib.loads(network.tensors[name].table())
                inputs.append([fill["shape"], fill["dtype"], fill.get("high", 0)])
            settings = settings_of(Place((Path(folder) / "port",)), "net", "build", "{}", inputs)
            report("random", str(seed), settings)


def table(rows: list[dict]) -> str:
    """How many of each package do what, and what does not compile alike."""
    lines = ["| package | ports | " + " | ".join(OUTCOMES) + " |", "|---|---|---|---|---|---|"]
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        own = [row for row in rows if row["corpus"] == corpus]
        counts = [sum(row["outcome"] == outcome for row in own) for outcome in OUTCOMES]
        lines.append(f"| {corpus} | {len(own)} | " + " | ".join(map(str, counts)) + " |")
    drawn = sum(row.get("compared") == 0 for row in rows)
    if drawn:
        lines.append(
            f"\nOf {drawn} all outputs are drawn: that they compile and run is all that counts."
        )
    lines += [
        f"- {row['corpus']} {row['builder']}: {row['outcome']}: {row.get('reason', '')}"
        for row in rows
        if row["outcome"] != "same"
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; 0 where all ports compile to the same, 1 if not."""
    arguments = parse_arguments(argv)
    if arguments.sample:
        arguments.corpora, arguments.only = ["torchvision"], "resnet18|:alexnet"
        arguments.random = 2
    machine, rows, before = tables.machine(), [], {}
    if arguments.out and arguments.out.is_file():
        for line in arguments.out.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["commit"] == machine["commit"]:
                before[row["corpus"], row["builder"]] = row

    def report(corpus: str, builder: str, settings: dict) -> None:
        row = before.get((corpus, builder))
        if row is None:
            row = {"corpus": corpus, "builder": builder, **answer_of(settings, arguments.timeout),
                   "commit": machine["commit"], "date": time.strftime("%Y-%m-%d")}  # fmt: skip
            if arguments.out:
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        rows.append(row)
        print(f"{row['outcome']:8} {corpus} {builder} {row.get('reason', '')}", flush=True)

    run_builders(arguments, report)
    if arguments.random:
        run_random(arguments, report)
    print(table(rows))
    print(f"commit {machine['commit'][:9]}, {machine['platform']}, {time.strftime('%Y-%m-%d')}")
    return 0 if all(row["outcome"] == "same" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

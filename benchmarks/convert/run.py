"""Convert real packages, from source and from the graph, and verify every builder of the table.

python benchmarks/convert/run.py --only resnet --seeds 1 --way source

python benchmarks/convert/run.py --not-yet --seeds 3         # what no earlier run has measured
python benchmarks/convert/run.py --not-yet --first-seed 1    # behind what the log holds of seed 0

python benchmarks/convert/run.py --summary

The builders, their inputs and what was made smaller stand in builders.toml.  Packages, ports and
finished builders are kept in ~/.cache/isograd-benchmarks/convert; with --resume a builder whose
files have not changed is not run again.  Every finished builder is a line of measured.jsonl, which
is committed: all of them take hours, and one session may go on where another has stopped.
"""

import argparse
import json
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE), str(HERE.parent / "verify")]

import corpora  # noqa: E402
import measured  # noqa: E402
import measuring  # noqa: E402
import tables  # noqa: E402

from isograd.convert.graph.run import convert_from_export  # noqa: E402
from isograd.convert.verifying import (  # noqa: E402
    BuilderResult,
    Outcome,
    VerifyOptions,
    parse_input,
    verify_builders,
)
from isograd.convert.verifying.places import Place, place_of  # noqa: E402
from isograd.errors import IsogradError  # noqa: E402

JOURNAL = corpora.FOLDER / "verified"
WAYS = ("source", "graph")


@dataclass(frozen=True)
class Row:
    """One builder, one way.

    left: findings to finish in the files that it needs.  silent: the port differs and no finding
    stands in any file of the network's own package that it needs.
    """

    corpus: str
    builder: str
    way: str
    input: str
    why: str
    outcome: str
    left: tuple[str, ...] = ()
    imported: bool = False
    paired: bool = False
    by_name: bool = False
    seeds: int = 0
    silent: bool = False
    problem: str = ""
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """As converted, with no hand edit: all weights by name, equivalent on all seeds.

        Findings in files that the builder imports do not count against it: what they tell of
        (downloads of weights, scripts) is not what the builder runs.  They stand in the table.
        """
        return self.outcome == Outcome.EQUIVALENT.value and self.paired and self.by_name


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = list(corpora.load())
    parser.add_argument("--corpora", nargs="+", choices=known, default=known)
    parser.add_argument("--only", metavar="PATTERN", default="", help="builders that match this")
    parser.add_argument("--way", choices=[*WAYS, "both"], default="both")
    parser.add_argument("--seeds", type=int, default=3, help="up to seed SEEDS-1 (default 3)")
    parser.add_argument(
        "--first-seed", type=int, default=0, help="leave out the seeds before, which the log holds"
    )
    parser.add_argument("--jobs", type=int, default=1, help="builders at the same time (default 1)")
    parser.add_argument("--resume", action="store_true", help="go on where the last run stopped")
    parser.add_argument("--log", type=Path, default=measured.LOG, metavar="FILE.jsonl")
    parser.add_argument("--not-yet", action="store_true", help="leave out what the log holds")
    parser.add_argument("--summary", action="store_true", help="print the log's table alone")
    parser.add_argument("--speed", metavar="FOLDER", type=Path, help="measure speed on this tree")
    parser.add_argument("--no-verify", action="store_true", help="convert and compare texts only")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="keep everything here")
    return parser.parse_args(argv)


def original_place(corpus: corpora.Corpus, known: dict[str, corpora.Corpus]) -> Place:
    """The original, what it imports from, and the builders that make it shallower."""
    others = [known[name].place() for name in corpus.beside]
    found = corpus.place().beside(corpora.WRAPPED, *others)
    return Place(found.search, found.packages, found.preludes[:1])


def port_place(corpus: corpora.Corpus, known: dict[str, corpora.Corpus]) -> Place:
    """The port, and the ports of what it imports from."""
    chosen = [corpus, *(known[name] for name in corpus.beside)]
    ported = [c for c in chosen if port_of(c).is_dir()]
    places = [place_of(port_of(c), c.package) for c in ported]
    return Place().beside(*places, corpora.WRAPPED)


def port_of(corpus: corpora.Corpus) -> Path:
    """Where a corpus is converted to."""
    return corpora.FOLDER / f"port-{corpus.name}" / corpus.package


def options(arguments: argparse.Namespace, subject: corpora.Subject) -> VerifyOptions:
    """How a builder is verified."""
    given = tuple(parse_input(text) for text in subject.inputs)
    seeds = tuple(range(arguments.first_seed, arguments.seeds))
    return VerifyOptions(given, seeds, steps=3, journal=JOURNAL)


def from_source(
    subject: corpora.Subject,
    arguments: argparse.Namespace,
    known: dict[str, corpora.Corpus],
    converted: dict[str, measuring.Converted],
) -> Row:
    """Verify the converted source of one builder."""
    corpus = known[subject.corpus]
    begin = time.monotonic()
    builder = subject.source()
    (result,) = verify_builders(
        original_place(corpus, known),
        port_place(corpus, known),
        [builder],
        options(arguments, subject),
    )
    findings = {k: v for one in converted.values() for k, v in one.by_file.items()}
    left = [
        f"{Path(file).name}:{words}"
        for file in result.files
        for words in findings.get(str(Path(file).resolve()), ())
    ]
    own = str(port_of(corpus).resolve())
    noticed = any(f.startswith(own) and findings.get(f) for f in map(str, _resolved(result)))
    silent = result.outcome is Outcome.DIVERGENT and not noticed
    return _row(subject, "source", result, tuple(left), silent, time.monotonic() - begin)


def _resolved(result: BuilderResult) -> list[Path]:
    return [Path(file).resolve() for file in result.files]


def from_graph(
    subject: corpora.Subject, arguments: argparse.Namespace, known: dict[str, corpora.Corpus]
) -> Row:
    """Export, write and verify one builder."""
    corpus = known[subject.corpus]
    begin = time.monotonic()
    builder = subject.source()
    out = corpora.FOLDER / "graph" / subject.name
    chosen = options(arguments, subject)
    place = original_place(corpus, known)
    try:
        conversion = convert_from_export(place, builder, out, chosen.inputs)
    except IsogradError as error:
        seconds = round(time.monotonic() - begin, 1)
        return _not_written(subject, "not exported", (), error.what[:600], seconds)
    left = tuple(f.message for f in conversion.findings if f.needs_a_person)
    if not conversion.files:
        return _not_written(subject, "unknown operator", left, left[0])
    (result,) = verify_builders(
        place, place_of(out), [builder], chosen, port_builders=[conversion.builder]
    )
    told = any(finding.code != "export.fixed-batch" for finding in conversion.findings)
    silent = result.outcome is Outcome.DIVERGENT and not told
    return _row(subject, "graph", result, left, silent, time.monotonic() - begin)


def _not_written(
    subject: corpora.Subject,
    outcome: str,
    left: tuple[str, ...],
    problem: str,
    seconds: float = 0.0,
) -> Row:
    """A builder of which the graph gave no module."""
    return Row(
        subject.corpus,
        subject.builder,
        "graph",
        " ".join(subject.inputs),
        subject.why,
        outcome,
        left,
        problem=problem,
        seconds=seconds,
    )


def _row(
    subject: corpora.Subject,
    way: str,
    result: BuilderResult,
    left: tuple[str, ...],
    silent: bool,
    seconds: float,
) -> Row:
    return Row(
        subject.corpus,
        subject.builder,
        way,
        " ".join(result.inputs),
        subject.why,
        result.outcome.value,
        left,
        result.imported,
        result.paired,
        all(seed.by_name for seed in result.seeds),
        len(result.seeds),
        silent,
        result.first_problem[:600],
        round(seconds, 1),
    )


def run_all(
    arguments: argparse.Namespace,
    known: dict[str, corpora.Corpus],
    converted: dict[str, measuring.Converted],
) -> list[Row]:
    """Run the chosen builders, tell the progress, and return the rows in the table's order."""
    pattern = re.compile(arguments.only)
    ways = WAYS if arguments.way == "both" else (arguments.way,)
    subjects = [
        subject
        for name in arguments.corpora
        for subject in known[name].subjects
        if pattern.search(subject.builder)
    ]
    for subject in subjects:
        subject.write_source()
    rows = {}
    log = measured.load(arguments.log, arguments.seeds) if arguments.not_yet else {}
    machine = tables.machine()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {}
        for subject in subjects:
            for way in ways:
                known_row = log.get((subject.corpus, subject.builder, way))
                measured_seeds = known_row.seeds if known_row is not None else 0
                if arguments.not_yet and measured_seeds not in range(
                    arguments.first_seed, arguments.seeds
                ):
                    continue
                job = (from_source, converted) if way == "source" else (from_graph,)
                future = pool.submit(job[0], subject, arguments, known, *job[1:])
                waiting[future] = (subject.name, way)
        try:
            for future in as_completed(waiting):
                if future.exception() is not None:  # the others are measured none the less
                    print(f"FAILED {waiting[future]}: {future.exception()!r}", file=sys.stderr)
                    continue
                row = rows[waiting[future]] = future.result()
                measured.append(arguments.log, row, arguments.first_seed, machine)
                mark = "right" if row.right else "WRONG"
                said = row.problem or (row.left[0] if row.left else "")
                print(
                    f"[{len(rows)}/{len(waiting)}] {mark} {row.way} {row.builder}: {row.outcome}, "
                    f"{row.seconds:.0f} s {said[:200]}",
                    file=sys.stderr,
                    flush=True,
                )
        except KeyboardInterrupt:
            print("Stopped; the finished builders are counted.", file=sys.stderr)
            pool.shutdown(cancel_futures=True)
    order = [(subject.name, way) for subject in subjects for way in ways]
    return [rows[key] for key in order if key in rows]


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; 0 if everything was right, 1 if not."""
    arguments = parse_arguments(argv)
    known = corpora.load()
    if arguments.summary:
        chosen = [known[name] for name in arguments.corpora]
        print(measured.table(arguments.log, chosen, WAYS, arguments.seeds))
        return 0
    wanted = {*arguments.corpora, *(b for n in arguments.corpora for b in known[n].beside)}
    if not arguments.resume:
        shutil.rmtree(JOURNAL, ignore_errors=True)
    converted = {}
    for name in wanted:
        corpora.fetch(known[name])
        if arguments.way != "graph":
            port_of(known[name]).parent.mkdir(parents=True, exist_ok=True)
            source = known[name].subset
            converted[name] = measuring.convert(name, source, port_of(known[name]))
    rows = [] if arguments.no_verify else run_all(arguments, known, converted)
    speed = None
    if arguments.speed:
        speed = measuring.speed(arguments.speed, corpora.FOLDER / "speed" / arguments.speed.name)
    print(tables.of_texts(list(converted.values())))
    print(tables.of_rows(rows))
    if speed:
        print(tables.of_speed(speed))
    if arguments.out:
        kept = {
            "machine": tables.machine(),
            "texts": [asdict(one) for one in converted.values()],
            "rows": [{**asdict(row), "right": row.right} for row in rows],
            "speed": speed,
        }
        arguments.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

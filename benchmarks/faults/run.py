"""Does `isograd verify` name the cause of every fault, and of nothing else?

python benchmarks/faults/run.py                              # everything, three seeds
python benchmarks/faults/run.py --sample 20 --seeds 1        # a spread sample of each kind
python benchmarks/faults/run.py --only mlp-gelu-tanh --out result.json
python benchmarks/faults/run.py --out result.json --resume   # only what result.json lacks

Small networks in PyTorch, each with a MindSpore port written by hand that computes the same, some
of them with activations rounded to bfloat16. One or several places of a port are edited
(faults.toml here and in benchmarks/verify); one run of `isograd verify` has to find every fault,
its module and its cause. Equivalent rewrites and the clean ports must stay silent. Simple rules
judge the same runs (rules.py).
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import catalog
import outcome
import rules
import tables
from outcome import Outcome

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import warm

KINDS = ("clean", "fault", "null")


@dataclass(frozen=True)
class Job:
    """One case with one seed; `edit` is None for the clean port."""

    network: str
    seed: int
    edit: catalog.Edit | None = None

    @property
    def id(self) -> str:
        """Return the edit's id, or a name for the clean port."""
        return self.edit.id if self.edit else f"clean-{self.network}"

    @property
    def kind(self) -> str:
        """Return "clean", "fault" or "null"."""
        return self.edit.kind if self.edit else "clean"

    @property
    def key(self) -> str:
        """Return the name under which a kept outcome is found again."""
        return f"{self.id}@{self.seed}"


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=catalog.CASES, default=catalog.USUAL)
    parser.add_argument("--only", nargs="+", metavar="ID", help="run these cases only")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds (default 3)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED", help="default 0")
    parser.add_argument("--clean", action="store_true", help="run the clean ports")
    parser.add_argument("--faults", action="store_true", help="run the faulty ports")
    parser.add_argument("--nulls", action="store_true", help="run the equivalent rewrites")
    parser.add_argument("--sample", type=int, metavar="N", help="run N cases of each kind only")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2)")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one run")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="keep everything here")
    parser.add_argument("--resume", action="store_true", help="skip the runs that --out holds")
    arguments = parser.parse_args(argv)
    if not (arguments.clean or arguments.faults or arguments.nulls):
        arguments.clean = arguments.faults = arguments.nulls = True
    if arguments.resume and not arguments.out:
        parser.error("--resume needs --out: the file that holds the finished runs")
    return arguments


def select(arguments: argparse.Namespace, edits: list[catalog.Edit]) -> list[Job]:
    """Return the jobs that the command line asks for, every case's seeds together."""
    cases: list[tuple[str, catalog.Edit | None]] = []
    for network in arguments.networks:
        cases.append((network, None))
        cases += [(network, edit) for edit in edits if edit.network == network]
    if arguments.only:
        known = {Job(network, 0, edit).id for network, edit in cases}
        unknown = set(arguments.only) - known
        if unknown:
            text = ", ".join(sorted(unknown))
            raise catalog.FaultError(f"No such case in these networks: {text}")
        cases = [case for case in cases if Job(case[0], 0, case[1]).id in arguments.only]
    else:
        wanted = dict(zip(KINDS, (arguments.clean, arguments.faults, arguments.nulls), strict=True))
        cases = [case for case in cases if wanted[Job(case[0], 0, case[1]).kind]]
    if arguments.sample:
        cases = _sample(cases, arguments.sample)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    return [Job(network, seed, edit) for network, edit in cases for seed in seeds]


def _sample(
    cases: list[tuple[str, catalog.Edit | None]], count: int
) -> list[tuple[str, catalog.Edit | None]]:
    """Choose cases of each kind, every class of faults once before any class twice."""
    chosen: set[str] = set()
    for kind in KINDS:
        jobs = [Job(network, 0, edit) for network, edit in cases]
        jobs = [job for job in jobs if job.kind == kind]
        random.Random(0).shuffle(jobs)
        seen: dict[str, int] = {}
        ranked = []
        for job in jobs:
            title = job.edit.title if job.edit else job.network
            seen[title] = seen.get(title, 0) + 1
            ranked.append((seen[title], job.id))
        chosen |= {name for _, name in sorted(ranked, key=lambda row: row[0])[:count]}
    return [case for case in cases if Job(case[0], 0, case[1]).id in chosen]


def run_job(job: Job, timeout_s: float) -> Outcome:
    """Verify one port in a temporary folder and return what isograd and the rules said."""
    with tempfile.TemporaryDirectory(prefix="isograd-benchmark-") as name:
        folder = Path(name)
        case = catalog.write_case(job.network, folder / "case", job.edit)
        report, kept = folder / "report.json", folder / "kept"
        start = time.perf_counter()
        status, error = warm.verified(case, job.seed, report, timeout_s, kept)
        seconds = round(time.perf_counter() - start, 2)
        said: dict[str, Any] = {}
        alarms: dict[str, bool | None] = {}
        try:
            read = json.loads(report.read_text())
            said = outcome.read_report(read)
            alarms = rules.judge(read, kept)
        except (OSError, ValueError, KeyError, TypeError) as problem:
            error = error or f"no readable JSON: {problem}"
    if said and status in (0, 1):
        error = ""
    return Outcome(
        job.id,
        job.network,
        job.kind,
        job.seed,
        exit_status=status,
        seconds=seconds,
        error=error,
        rules=alarms,
        **said,
    )


def run_all(
    jobs: list[Job], done: dict[str, Outcome], arguments: argparse.Namespace
) -> list[Outcome]:
    """Run the jobs side by side, keep each as it ends, and return all in the jobs' order."""
    threads = max(1, (os.cpu_count() or 1) // arguments.jobs)
    left = [job for job in jobs if job.key not in done]
    pool = ProcessPoolExecutor(arguments.jobs, get_context("spawn"), warm.begin, (threads,))
    with pool:
        waiting = {pool.submit(run_job, job, arguments.timeout): job for job in left}
        try:
            for number, future in enumerate(as_completed(waiting), 1):
                job, result = waiting[future], future.result()
                done[job.key] = result
                print(f"[{number}/{len(left)}] {tables.line(result, job.edit)}", file=sys.stderr)
                if arguments.out:
                    keep(arguments.out, done)
        except KeyboardInterrupt:
            print("Stopped; the finished runs are counted.", file=sys.stderr)
            pool.shutdown(cancel_futures=True)
    return [done[job.key] for job in jobs if job.key in done]


def keep(path: Path, done: dict[str, Outcome], totals: dict[str, Any] | None = None) -> None:
    """Write all outcomes; the file is whole at every moment."""
    data = {
        "machine": machine(),
        "totals": totals,
        "results": [asdict(result) for result in done.values()],
    }
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(data, indent=1) + "\n")
    unfinished.replace(path)


def finished(path: Path) -> dict[str, Outcome]:
    """Read the outcomes that an earlier run kept; those without an answer are run again."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["results"]
    results = [outcome.from_json(row) for row in rows]
    return {result.key: result for result in results if result.answered}


@functools.cache
def machine() -> dict[str, Any]:
    """Return machine, versions and commit as the benchmark of verify reports them."""
    path = catalog.VERIFY_BENCHMARK / "run.py"
    spec = importlib.util.spec_from_file_location("verify_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["verify_run"] = module
    spec.loader.exec_module(module)
    return module.machine()


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return 0 if every answer was right, 1 if not, 2 for a wrong call."""
    arguments = parse_arguments(argv)
    try:
        edits = catalog.load()
        jobs = select(arguments, edits)
        done = finished(arguments.out) if arguments.resume else {}
    except (catalog.FaultError, ValueError, OSError, KeyError) as problem:
        print(problem, file=sys.stderr)
        return 2
    if not jobs:
        print("Nothing to run: no case fits these options.", file=sys.stderr)
        return 2
    results = run_all(jobs, done, arguments)
    by_id = {edit.id: edit for edit in edits}
    print(tables.everything(results, by_id))
    if arguments.out:
        keep(arguments.out, done, tables.totals(results, by_id))
    right = all(tables.is_right(result, by_id.get(result.id)) for result in results)
    return 0 if right and len(results) == len(jobs) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Run `isograd verify` on clean ports, faulty ports and equivalent rewrites, and keep the score.

python benchmarks/verify/run.py --networks cnn --seeds 1 --faults
"""

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import faults
import summary

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import warm

PACKAGES = ("isograd", "torch", "mindspore", "numpy")


@dataclass(frozen=True)
class Job:
    """One case with one seed; `edit` is None for the clean port."""

    network: str
    seed: int
    edit: faults.Edit | None = None

    @property
    def id(self) -> str:
        """Return the edit's id, or a name for the clean port."""
        return self.edit.id if self.edit else f"clean-{self.network}"

    @property
    def kind(self) -> str:
        """Return "clean", "fault" or "null"."""
        return self.edit.kind if self.edit else "clean"


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=faults.CASES, default=list(faults.CASES))
    parser.add_argument("--only", nargs="+", metavar="ID", help="run these cases only")
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 to SEEDS-1 (default 5)")
    parser.add_argument("--clean", action="store_true", help="run the clean ports")
    parser.add_argument("--faults", action="store_true", help="run the faulty ports")
    parser.add_argument("--nulls", action="store_true", help="run the equivalent rewrites")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2)")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one run")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="keep everything here")
    parser.add_argument(
        "--docs", type=Path, metavar="FILE.md", help="write the table into this page, between marks"
    )
    parser.add_argument("--cause", metavar="ID", help="run the faults with this cause only")
    arguments = parser.parse_args(argv)
    if not (arguments.clean or arguments.faults or arguments.nulls):
        arguments.clean = arguments.faults = arguments.nulls = True
    return arguments


def select(arguments: argparse.Namespace) -> list[Job]:
    """Return the jobs that the command line asks for, every case's seeds together."""
    wanted = {"clean": arguments.clean, "fault": arguments.faults, "null": arguments.nulls}
    edits = [None, *faults.load()]
    jobs = [
        Job(network, seed, edit)
        for network in arguments.networks
        for edit in edits
        if edit is None or edit.network == network
        for seed in range(arguments.seeds)
    ]
    if arguments.only:
        unknown = set(arguments.only) - {job.id for job in jobs}
        if unknown:
            raise faults.FaultError(f"No such case in these networks: {', '.join(sorted(unknown))}")
        return [job for job in jobs if job.id in arguments.only]
    if arguments.cause:
        return [job for job in jobs if job.edit and job.edit.cause == arguments.cause]
    return [job for job in jobs if wanted[job.kind]]


def run_job(job: Job, timeout_s: float) -> summary.Result:
    """Verify one port in a temporary folder and return what isograd said."""
    with tempfile.TemporaryDirectory(prefix="isograd-benchmark-") as folder:
        case = faults.write_case(job.network, Path(folder) / "case", job.edit)
        report = Path(folder) / "report.json"
        start = time.perf_counter()
        status, error = warm.verified(case, job.seed, report, timeout_s)
        seconds = time.perf_counter() - start
        said = {
            "verdict": None,
            "found_stage": None,
            "found_module": None,
            "found_causes": (),
            "ratio": None,
        }
        try:
            said = summary.read_verdict(json.loads(report.read_text()))
        except (OSError, ValueError, KeyError, TypeError) as problem:
            error = error or f"no readable JSON: {problem}"
    answered = said["verdict"] is not None
    return summary.Result(
        id=job.id,
        network=job.network,
        kind=job.kind,
        seed=job.seed,
        expected_cause=job.edit.cause if job.edit else None,
        expected_stages=job.edit.stages if job.edit else (),
        expected_module=job.edit.module if job.edit else None,
        exit_status=status,
        seconds=round(seconds, 2),
        error="" if answered and status in (0, 1) else error,
        **said,
    )


def run_all(jobs: list[Job], workers: int, timeout_s: float) -> list[summary.Result]:
    """Run the jobs side by side, tell the progress, and return the results in the jobs' order."""
    threads = max(1, (os.cpu_count() or 1) // workers)
    results = {}
    with ProcessPoolExecutor(workers, get_context("spawn"), warm.begin, (threads,)) as pool:
        waiting = {pool.submit(run_job, job, timeout_s): job for job in jobs}
        try:
            for future in as_completed(waiting):
                result = results[waiting[future]] = future.result()
                mark = "right" if result.right else "WRONG"
                print(
                    f"[{len(results)}/{len(jobs)}] {mark} {result.id} seed {result.seed}: "
                    f"{result.verdict or result.error.splitlines()[-1:]}, {result.seconds:.1f} s",
                    file=sys.stderr,
                    flush=True,
                )
        except KeyboardInterrupt:
            print("Stopped; the finished runs are counted.", file=sys.stderr)
            pool.shutdown(cancel_futures=True)
    return [results[job] for job in jobs if job in results]


def machine() -> dict:
    """Return what a reader needs to judge the figures: machine, versions, commit."""
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {package: _version(package) for package in PACKAGES},
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit of the repository, or None where git does not tell."""
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-C", str(faults.REPOSITORY), "rev-parse", "--verify", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _processor() -> str:
    """Return the processor's name, from Linux's own file where it is there."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def write_docs(arguments: argparse.Namespace, results: list[summary.Result], counts: dict) -> None:
    """Put the table between the page's marks for this cause, or at its end where there are none."""
    name = arguments.cause or "all"
    begin, end = f"<!-- benchmarks/verify: {name} -->", f"<!-- end: {name} -->"
    ran = machine()
    where = f"{ran['cores']} cores, {ran['processor']}, commit {ran['commit']}, {date.today()}"
    block = "\n".join(
        [begin, "", where, "", summary.table(results), "", summary.totals_text(counts), "", end]
    )
    page = arguments.docs.read_text(encoding="utf-8")
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2] if found else "\n"
    before = before if found else f"{before.rstrip()}\n\n"
    arguments.docs.write_text(before + block + after, encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return 0 if every answer was right, 1 if not, 2 for a wrong call."""
    arguments = parse_arguments(argv)
    try:
        jobs = select(arguments)
    except faults.FaultError as problem:
        print(problem, file=sys.stderr)
        return 2
    if not jobs:
        print("Nothing to run: no case fits these options.", file=sys.stderr)
        return 2
    results = run_all(jobs, arguments.jobs, arguments.timeout)
    counts = summary.totals(results)
    print(summary.table(results))
    print()
    print(summary.totals_text(counts))
    if arguments.docs:
        write_docs(arguments, results, counts)
    if arguments.out:
        rows = [{**asdict(result), "right": result.right} for result in results]
        kept = {"machine": machine(), "totals": counts, "results": rows}
        arguments.out.write_text(json.dumps(kept, indent=1) + "\n")
    return 0 if len(results) == len(jobs) and all(result.right for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What can be said of a converted tree without running it: parsing, comments, speed."""

from __future__ import annotations

import ast
import collections
import io
import json
import os
import resource
import subprocess
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

#: The code of this checkout, also where another one is installed.
OWN = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}

_SPEED = """
import json, resource, sys, time
from pathlib import Path
from isograd.convert import Options, convert_path
begin, wall = time.process_time(), time.perf_counter()
report = convert_path(Path(sys.argv[1]), Path(sys.argv[2]), Options("ops", force=True))
spent, passed = time.process_time() - begin, time.perf_counter() - wall
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"files": len(report.files), "lines": report.lines, "process_s": spent,
                  "wall_s": passed, "peak_mb": peak}))
"""


@dataclass(frozen=True)
class Converted:
    """What `isograd convert` left of a corpus.

    by_file: findings to finish, by the file's path in the port.  lost: comment lines of the
    original that the port does not hold.
    """

    corpus: str
    status: int
    problem: str = ""
    files: int = 0
    unparsed: tuple[str, ...] = ()
    comments: int = 0
    lost: tuple[str, ...] = ()
    by_file: dict[str, list[str]] = field(default_factory=dict)


def convert(corpus: str, source: Path, out: Path) -> Converted:
    """Run this checkout's `isograd convert` on a tree."""
    report = out.with_suffix(".json")
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "isograd", "convert", str(source), "-o", str(out), "--force"]
    done = subprocess.run(
        [*command, "--json", str(report), "--quiet"],
        capture_output=True, text=True, check=False, env=OWN,
    )  # fmt: skip
    if done.returncode not in (0, 1) or not report.is_file():
        return Converted(corpus, done.returncode, done.stderr.strip()[-800:])
    by_file: dict[str, list[str]] = {}
    for finding in json.loads(report.read_text(encoding="utf-8"))["findings"]:
        if finding.get("level", "finish") == "finish":
            place = str((out / finding["file"]).resolve())
            words = f"{finding['line']}: {finding['code']}: {finding['message']}"
            by_file.setdefault(place, []).append(words)
    kept = compare_trees(source, out)
    return Converted(corpus, done.returncode, "", *kept, by_file)


def compare_trees(source: Path, out: Path) -> tuple[int, tuple[str, ...], int, tuple[str, ...]]:
    """Files, those that do not parse, comment lines, and those that are lost."""
    unparsed, lost, comments, files = [], [], 0, 0
    for path in sorted(source.rglob("*.py")):
        files += 1
        target = out / path.relative_to(source)
        try:
            text = target.read_text(encoding="utf-8")
            ast.parse(text)
        except (OSError, SyntaxError, ValueError) as error:
            unparsed.append(f"{target}: {error}")
            continue
        before = comments_of(path.read_text(encoding="utf-8"))
        after = collections.Counter(comments_of(text))
        comments += len(before)
        missing = collections.Counter(before) - after
        lost += [f"{target.name}: {text}" for text in missing.elements()]
    return files, tuple(unparsed), comments, tuple(lost)


def comments_of(text: str) -> list[str]:
    """The comments of a source, without what isograd added behind them."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            own = token.string.split("# isograd:")[0].strip()
            found += [own] if own else []
    return found


def speed(source: Path, out: Path) -> dict[str, float]:
    """Lines a second of one core over a tree, and the most memory."""
    done = subprocess.run(
        [sys.executable, "-c", _SPEED, str(source), str(out)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_on_one_core,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-800:])
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    found["lines_per_s"] = found["lines"] / found["process_s"]
    return found


def _on_one_core() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

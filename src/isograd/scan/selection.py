"""Which files of a project are read, and which findings are reported."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from isograd.scan.model import Answer, ScanReport

#: Seconds that git may take to list what it ignores.
_GIT_TIMEOUT_S = 60
_COMMENT = re.compile(r"#\s*isograd:\s*ignore(?:\[([^\]\n]*)\])?\s*(?:#|$)")

_Found = TypeVar("_Found")
#: The patterns of one comment; of one without brackets, everything.
Patterns = tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """What a person asked for.

    select, ignore: globs of codes ("api-missing", "hook") or of APIs ("torch.nn.*").
    exclude: globs of names, or of paths relative to the root.
    with_ignored: whether files that git ignores are read.
    """

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    exclude: Sequence[str] = ()
    with_ignored: bool = False

    def reports(self, names: Iterable[str]) -> bool:
        """Whether a finding by any of these names (its code, its API) is reported."""
        known = tuple(names)
        if self.select and not matches(self.select, known):
            return False
        return not matches(self.ignore, known)


def matches(patterns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of the names fits one of the globs."""
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


EVERYTHING = Selection()


@dataclass
class Skipper:
    """Decides for each file and folder below a root whether it is left out, and remembers which."""

    root: str
    exclude: Sequence[str] = ()
    ignored: frozenset[str] = frozenset()
    skipped: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, root: Path, selection: Selection) -> Skipper:
        """For a folder that a person named, which is read even where git ignores it."""
        is_asked = root.is_dir() and not selection.with_ignored
        ignored = git_ignored(root) if is_asked else frozenset()
        return cls(str(root), tuple(selection.exclude), ignored)

    def skips(self, path: str) -> bool:
        """Whether this path below the root is left out."""
        if not self.ignored and not self.exclude:
            return False
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        name = relative.rpartition("/")[2]
        if relative not in self.ignored and not any(
            fnmatchcase(name, pattern.rstrip("/")) or fnmatchcase(relative, pattern.rstrip("/"))
            for pattern in self.exclude
        ):
            return False
        self.skipped.append(relative)
        return True


def git_ignored(root: Path) -> frozenset[str]:
    """Paths below the folder that git ignores and does not track, folders without what they hold.

    Nothing outside a work tree, without git, or where the folder itself is ignored.  Settings by
    which a repository could run a program are turned off.
    """
    command = [
        "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", str(root),
        "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return frozenset()
    if done.returncode != 0:
        return frozenset()
    names = (os.fsdecode(name).rstrip("/") for name in done.stdout.split(b"\0") if name)
    return frozenset(name for name in names if name not in ("", "."))


def ignored_lines(text: str) -> dict[int, Patterns]:
    """Lines with a comment `# isograd: ignore` or `# isograd: ignore[CODE, …]`, from 1."""
    if "isograd:" not in text:
        return {}
    found: dict[int, Patterns] = {}
    for number, line in enumerate(text.split("\n"), 1):
        comment = _COMMENT.search(line)
        if comment is not None:
            codes = (part.strip() for part in (comment[1] or "*").split(","))
            found[number] = tuple(code for code in codes if code)
    return found


def answer_names(answer: Answer) -> tuple[str, str]:
    """The names by which an answer is selected: its code and its API."""
    return f"api-{answer.status}", answer.api


def _parted(
    found: Iterable[_Found], is_kept: Callable[[_Found], bool]
) -> tuple[tuple[_Found, ...], tuple[_Found, ...]]:
    """What is kept, and what is not, each in its order."""
    parts: tuple[list[_Found], list[_Found]] = ([], [])
    for one in found:
        parts[not is_kept(one)].append(one)
    return tuple(parts[0]), tuple(parts[1])


def select_findings(report: ScanReport, selection: Selection) -> ScanReport:
    """The report without the findings that are ignored; `suppressed` counts them."""
    suppressed = 0
    files = []
    for scan in report.files:
        comments = {(cell, line): patterns for cell, line, patterns in scan.ignores}
        if not (comments or selection.select or selection.ignore):
            files.append(scan)
            continue

        def is_kept(cell: int, line: int, *names: str, comments: dict = comments) -> bool:  # type: ignore[type-arg]
            return selection.reports(names) and not matches(comments.get((cell, line), ()), names)

        uses, other_uses = _parted(
            scan.uses,
            lambda use: (
                use.answer.status == "supported"
                or is_kept(use.cell, use.line, *answer_names(use.answer))
            ),
        )
        hazards, other_hazards = _parted(
            scan.hazards, lambda one: is_kept(one.cell, one.line, one.code)
        )
        suppressed += len(other_uses) + len(other_hazards)
        files.append(
            replace(
                scan,
                uses=uses,
                hazards=hazards,
                other_uses=other_uses,
                other_hazards=other_hazards,
            )
        )
    return replace(report, files=tuple(files), suppressed=suppressed)

"""What a file or folder is that isograd did not write, and its report."""

from __future__ import annotations

from pathlib import Path

from isograd.compare.files.logs import is_log
from isograd.errors import RunError
from isograd.watch.model import WatchReport
from isograd.watch.offline.checkpoints import checkpoint_files, judge_checkpoints
from isograd.watch.offline.dumps import dump_operators, judge_dump
from isograd.watch.offline.logs import judge_log
from isograd.watch.offline.monitor import judge_monitor, monitor_files
from isograd.watch.ranks import judge_ranks, rank_folders


def read_offline(path: Path) -> WatchReport:
    """The report of what lies at a path; RunError where nothing there can be watched."""
    if path.is_dir():
        if len(ranks := rank_folders(path)) > 1:
            return judge_ranks(path, ranks)
        if files := monitor_files(path):
            return judge_monitor(path, files)
        if operators := dump_operators(path):
            return judge_dump(path, operators)
        if is_log(str(path)):
            return judge_log(path)
        if len(files := checkpoint_files(path)) > 1:
            return judge_checkpoints(path, files)
    elif is_log(str(path)):
        return judge_log(path)
    raise RunError(
        f"{path}: holds no run, no losses, no dump, and no series of checkpoints",
        "Name a folder that a watched training wrote, a log with losses, TensorBoard or MindSpore "
        "event files, a dump, msprobe's monitor folder, or a folder of checkpoints.",
    )

"""How far a comparison is, its rate and the time left."""

from __future__ import annotations

from isograd.report.progress_line import ProgressLine, time_left


class CompareLine(ProgressLine):
    """A listener to a comparison."""

    def advance(self, done: int, total: int, done_bytes: int, total_bytes: int) -> None:
        """`done` of `total` pairs are compared."""
        elapsed_s = self.due_s()
        if elapsed_s is not None:
            self.draw(progress_text(done, total, done_bytes, total_bytes, elapsed_s))


def progress_text(
    done: int, total: int, done_bytes: int, total_bytes: int, elapsed_s: float
) -> str:
    """One line: pairs, rate, and the time that the rest takes at this rate."""
    rate = done_bytes / elapsed_s if elapsed_s > 0 else 0.0
    left = time_left(done_bytes, total_bytes, rate)
    return f"compare  {done:,} / {total:,} pairs, {rate / 1e9:.2f} GB/s{left}"

"""A table as Parquet, by DuckDB: a row per number, as (step, time_s, name, value)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from isograd.errors import UsageError
from isograd.runs.table import Table

#: Numbers beyond which the export would hold up the end of a training.
_MOST_NUMBERS = 20_000_000

_QUERY = """
COPY (SELECT n.step, n.time_s, names.name, coalesce(n.value, 'NaN'::DOUBLE) AS value
      FROM numbers AS n JOIN names ON names.number = n.series ORDER BY n.series, n.step)
TO '{target}' (FORMAT parquet)
"""


def write_parquet(table: Table, target: Path) -> bool:
    """Write a table atomically; False where DuckDB (extra `sql`) is missing or nothing is there.

    Raises UsageError where the file cannot be written.
    """
    names = table.columns
    if not table.row_count or table.row_count * len(names) > _MOST_NUMBERS:
        return False
    try:
        import duckdb
    except ImportError:
        return False
    times = dict(zip(table.steps.tolist(), table.times.tolist(), strict=True))
    series = [table.series(name) for name in names]
    counts = [len(steps) for steps, _ in series]
    steps = np.concatenate([steps for steps, _ in series])
    numbers = {
        "step": steps,
        "time_s": np.array([times[step] for step in steps.tolist()]),
        "series": np.repeat(np.arange(len(names)), counts),
        "value": np.concatenate([values for _, values in series]),
    }
    partial = target.with_name(f".isograd-{os.getpid()}.parquet.partial")
    try:
        with duckdb.connect() as connection:
            connection.register("numbers", numbers)
            texts = np.array(names, dtype=object)
            connection.register("names", {"number": np.arange(len(names)), "name": texts})
            connection.execute(_QUERY.format(target=str(partial).replace("'", "''")))
        partial.replace(target)
    except (duckdb.Error, OSError) as error:
        raise UsageError(
            f"{target} cannot be written: {error}", "The same numbers stand in the folder scalars."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return True

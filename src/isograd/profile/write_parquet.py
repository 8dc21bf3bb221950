"""Operators as Parquet, by DuckDB (extra `sql`)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from isograd.compare.parquet import require_duckdb
from isograd.profile.report import ProfileReport

_TEXTS = ("name", "shapes", "dtypes", "module", "where")
_NUMBERS = ("calls", "self_s", "total_s", "spread")


def operators_parquet(report: ProfileReport) -> bytes:
    """One row per operator, shape and dtype; seconds per step."""
    connection = require_duckdb().connect()
    operators = report.analysis.operators
    columns = {
        name: np.asarray([getattr(one, name) or "" for one in operators], dtype=object)
        for name in _TEXTS
    }
    columns |= {
        name: np.asarray([getattr(one, name) for one in operators], dtype=np.float64)
        for name in _NUMBERS
    }
    connection.register("operators", columns)
    texts = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in _TEXTS)
    numbers = ", ".join(f'"{name}"' for name in _NUMBERS)
    with tempfile.TemporaryDirectory(prefix="isograd-") as folder:
        file = Path(folder) / "operators.parquet"
        target = str(file).replace("'", "''")
        connection.execute(
            f"COPY (SELECT {texts}, {numbers} FROM operators) TO '{target}' (FORMAT parquet)"  # noqa: S608 - our own names
        )
        connection.close()
        return file.read_bytes()

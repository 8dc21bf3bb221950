"""A comparison as a Parquet file, and questions to such files in SQL, both by DuckDB (optional)."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isograd.compare.answer import Answer
from isograd.compare.data import COLUMNS, row
from isograd.compare.files.model import FilesReport, TensorComparison
from isograd.errors import UsageError

#: The table that a question is asked of; further files are `result2`, `result3`, …
TABLE = "result"
_TEXTS = frozenset(
    ("reference", "other", "how", "verdict", "dtype_reference", "dtype_other", "detail",
     "reference_there", "other_there")
)  # fmt: skip
_LISTS = frozenset(
    ("shape_reference", "shape_other", "greatest_absolute_index", "greatest_relative_index", "ulps",
     "histogram_powers", "histogram_counts")
)  # fmt: skip
_REALS = frozenset(
    ("allowed", "greatest_absolute", "greatest_relative", "error_norm", "reference_norm",
     "other_norm", "relative_error", "cosine", "snr_db", "relative", "absolute")
)  # fmt: skip


def parquet_columns() -> tuple[str, ...]:
    """The columns of a result, as the CSV has them, but for the histogram, which is two lists."""
    plain = tuple(name for name in COLUMNS if name != "histogram")
    return (*plain, "histogram_powers", "histogram_counts")


def parquet_bytes(report: FilesReport) -> bytes:
    """A file with a row per pair; UsageError where DuckDB is missing."""

    connection = require_duckdb().connect()
    rows = [_values(found) for found in report.comparisons]
    columns = {
        name: _column(name, [cells[place] for cells in rows])
        for place, name in enumerate(parquet_columns())
    }
    connection.register("rows", columns)
    chosen = ", ".join(f'CAST("{name}" AS {_type(name)}) AS "{name}"' for name in columns)
    with tempfile.TemporaryDirectory(prefix="isograd-") as folder:
        file = Path(folder) / "result.parquet"
        target = str(file).replace("'", "''")
        connection.execute(f"COPY (SELECT {chosen} FROM rows) TO '{target}' (FORMAT parquet)")  # noqa: S608 - our own names
        content = file.read_bytes()
    connection.close()
    return content


def answer(question: str, files: Sequence[Path]) -> Answer:
    """Ask Parquet files a question in SQL.

    The question sees the tables `result`, `result2`, … and no other file.
    Raises UsageError where a file cannot be read or the question is none.
    """
    if not files:
        raise UsageError("--sql is given without a file", "Name a file that --parquet wrote.")
    duckdb = require_duckdb()
    connection = duckdb.connect()
    for number, file in enumerate(files, 1):
        table = TABLE if number == 1 else f"{TABLE}{number}"
        if not file.is_file():
            raise UsageError(f"{file} does not exist", "Name a file that --parquet wrote.")
        try:
            connection.execute(
                f"CREATE TABLE {table} AS SELECT * FROM read_parquet(?)",  # noqa: S608 - our own name
                [str(file)],
            )
        except duckdb.Error as error:
            raise UsageError(
                f"{file} is no Parquet file: {_first_line(error)}",
                "Name a file that --parquet wrote.",
            ) from error
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    try:
        found = connection.execute(question)
        names = tuple(column[0] for column in found.description or ())
        return Answer(question, names, tuple(found.fetchall()))
    except duckdb.Error as error:
        raise UsageError(
            f"the question cannot be answered: {_first_line(error)}",
            f"Its columns are: {', '.join(parquet_columns())}.",
        ) from error


def require_duckdb() -> Any:
    """The module; UsageError where it is missing."""
    try:
        return importlib.import_module("duckdb")
    except ImportError as error:
        raise UsageError(
            "Parquet and SQL need DuckDB, which is not installed",
            'Install it: pip install "isograd[sql]".',
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _values(found: TensorComparison) -> list[Any]:
    cells = dict(zip(COLUMNS, row(found), strict=True))
    histogram = cells.pop("histogram")
    lists = zip(*histogram, strict=True) if histogram else ((), ())
    powers, counts = (None, None) if histogram is None else (list(part) for part in lists)
    return [*cells.values(), powers, counts]


def _type(name: str) -> str:
    if name in _TEXTS:
        return "VARCHAR"
    if name in _LISTS:
        return "BIGINT[]"
    return "DOUBLE" if name in _REALS else "BIGINT"


def _column(name: str, values: list[Any]) -> Any:
    """A numpy column of a type that DuckDB casts; a list goes as its text."""
    if name in _REALS:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    if name in _TEXTS:
        return np.array([_text(value) for value in values], object)
    found = np.empty(len(values), object)
    for place, value in enumerate(values):
        found[place] = None if value is None else str(list(value) if name in _LISTS else value)
    return found


def _text(value: object) -> str | None:
    """A string without lone surrogates, which Parquet cannot hold."""
    return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()

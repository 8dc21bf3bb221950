"""Numbers and names as words: what every text and page writes alike."""

from __future__ import annotations

import math
import unicodedata

#: From here on a ratio is written with an exponent.
_GREAT_RATIO = 1e6
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def printable(text: str) -> str:
    """The text on one line, with control and direction characters written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escape(character: str) -> str:
    return character.encode("unicode_escape", errors="backslashreplace").decode("ascii")


def count_text(number: int, noun: str) -> str:
    """A number with its noun: `1 call`, `2,000 calls`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def seconds_text(elapsed_s: float) -> str:
    """A duration in seconds, with one decimal."""
    return f"{elapsed_s:.1f}"


def index_text(index: tuple[int, ...]) -> str:
    """An index as Python writes it."""
    return str(tuple(int(part) for part in index))


def ratio_text(ratio: float) -> str:
    """A ratio with two significant digits: `0.43`, `41,000`, `1.4e+09`."""
    if not math.isfinite(ratio):
        return "∞" if ratio > 0 else "not a number"
    if abs(ratio) >= _GREAT_RATIO:
        return f"{ratio:.1e}"
    if abs(ratio) >= 10:
        return f"{float(f'{ratio:.1e}'):,.0f}"
    return f"{ratio:.2g}"


def number_text(value: float | str | None) -> str:
    """A setting's value as a person would write it."""
    if isinstance(value, str):
        return printable(value)
    return "unknown" if value is None else f"{value:.6g}"


def cell_text(value: str | int | float | bool | None, format: str = "") -> str:
    """A cell of a table: integers with separators, numbers with four digits, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return printable(value)
    if format and (isinstance(value, int) or math.isfinite(value)):
        return format_number(value, format)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}"


def format_number(value: int | float, format: str) -> str:
    """A number by a format specification; a width of blanks stands before a percent sign."""
    text = f"{value:{format}}"
    return f"{text[:-1]} %" if text.endswith("%") else text


def more_text(number: int) -> str:
    """What stands below a list that leaves some of its entries out."""
    return f"and {number:,} more in --json"

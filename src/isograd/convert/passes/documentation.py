"""The manual's page of passes: `python -m isograd.convert.passes.documentation` writes it."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterable
from pathlib import Path

from isograd.convert.passes import Pass, all_passes
from isograd.convert.passes.example import Example

_HEAD = """# Rules of `isograd convert`

Written by `python -m isograd.convert.passes.documentation` from the rules themselves. Tests run \
every example with the rule and without it. Rules see a piece of the program in this order, inner \
pieces before those around them; the first that writes it is the last that sees it.
"""


def passes_page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD, *("\n".join(_section(item)) for item in all_passes())])


def _section(item: Pass) -> Iterable[str]:
    yield f"## {type(item).__name__}\n"
    yield f"{inspect.getdoc(type(item))}\n"
    for example in item.examples:
        yield f"Example: {example.name}.\n"
        yield from ("```python", example.body.rstrip("\n"), "```\n")
        port, said = _converted(example)
        yield from ("becomes\n", "```python", port, "```\n") if port else ("goes away.\n",)
        yield from (f"> `{code}` {message}\n" for code, message in said)
    left = "; ".join(example.name for example in item.counterexamples)
    yield f"Left as it is, or to other rules: {left}.\n"


def _converted(example: Example) -> tuple[str, list[tuple[str, str]]]:
    """The port without its imports, and what is said of it."""
    from isograd.convert.run import convert_path

    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "net.py", Path(folder) / "out"
        path.write_text(example.source, encoding="utf-8")
        report = convert_path(path, out)
        lines = (out / "net.py").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("import ", "from "))]
    return "\n".join(kept).strip("\n"), [(one.code, one.message) for one in report.findings]


def main() -> None:
    """Write docs/convert-rules.md below the current folder."""
    from isograd.files import write_text

    write_text(Path("docs/convert-rules.md"), passes_page())


if __name__ == "__main__":
    main()

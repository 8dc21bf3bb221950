"""Statements outside of functions that write into tensors: the values of all names, on both sides.

    python benchmarks/convert/module_level.py [--sample N] [--cells] [--out FILE.json]

A program is a tensor, perhaps another name of it (alias, view, list, loop variable), one statement
that writes (in-place method, `out=`, augmented assignment, element) in one form (a statement, a
bound value, a chain, a loop, a class body, a comprehension), and reads behind it.  All names of
each program are compared after it ran, in torch and as converted in MindSpore.  A program is the
same, reported (it has a finding), or silent: it differs or raises, and nothing says so.  With
--cells each program is a notebook whose statements are cells of their own; with --function it is
the body of a function that returns its names.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isograd.convert import ConvertReport, convert_path

sys.path.insert(0, str(Path(__file__).parent))
from expressions import is_same

SEED = 0
HEAD = """import torch
import torch.nn.functional as F

x = torch.arange(12, dtype=torch.float32).reshape(3, 4) * 0.25 - 1.0
w = torch.linspace(0.5, 2.0, 12).reshape(3, 4)
"""
#: Another name of x, or none; `y` is read behind the statement in each case.
ALIASES = {
    "none": "y = x + 0",
    "name": "y = x",
    "chain of names": "z = x\ny = z",
    "view": "y = x.view(-1)",
    "reshape": "y = x.reshape(4, 3)",
    "transpose": "y = x.t()",
    "row": "y = x[0]",
    "slice": "y = x[1:, ::2]",
    "unsqueeze": "y = x.unsqueeze(0)",
    "detach": "y = x.detach()",
    "list": "y = [x, w]",
    "dict": "y = {'first': x}",
    "tuple": "y = (x, 1)",
    "chunks": "y = x.chunk(3)",
    "several names": "y = z = x",
    "choice": "y = x if w.sum() > 0 else w",
    "function": "def reading():\n    return x * 2\n\n\ny = x",
    "rebound": "y = x\nx = x * 1.0",
    "clone": "y = x.clone()",
    "attribute": "class Held:\n    kept = x\n\n\ny = Held",
    "swapped": "y, v = w, x",
    "dropped": "y = x\ny = w",
}
#: Expressions that write into {0}.
METHODS = [
    *("{0}.add_(1)", "{0}.mul_(w[0, 1])", "{0}.sub_(0.5)", "{0}.div_(2.0)", "{0}.abs_()"),
    *("{0}.neg_()", "{0}.clamp_(-0.5, 0.5)", "{0}.clamp_(min=0)", "{0}.zero_()", "{0}.fill_(3.0)"),
    *("{0}.sigmoid_()", "{0}.tanh_()", "{0}.sin_()", "{0}.relu_()", "{0}.pow_(2)", "{0}.floor_()"),
    *("{0}.copy_({0} * 2)", "{0}.masked_fill_({0} > 0, 9.0)", "{0}.mul_(2).add_(1)", "{0}.cos_()"),
    *("{0}.data.add_(1)", "{0}.round_()", "{0}.lerp_({0} * 0, 0.25)", "{0}.square_()"),
    *("F.relu_({0})", "F.relu({0}, inplace=True)", "torch.relu_({0})", "torch.neg_({0})"),
    *("F.elu({0}, inplace=True)", "F.leaky_relu_({0}, 0.1)", "torch.nn.init.ones_({0})"),
    *(
        "torch.acos({0} * 0.1, out={0})",
        "torch.add({0}, 2, out={0})",
        "torch.exp({0} * 0.1, out={0})",
    ),
    *("torch.mul({0}, {0}, out={0})", "torch.sub(5, {0}, out={0})"),
    *("torch.clamp({0}, 0, 1, out={0})", "torch.abs({0}, out={0})"),
]
#: Statements that write into {0} and have no value.
STATEMENTS = [
    *("{0} += 1", "{0} *= 2.5", "{0} -= {0} * 0.5", "{0} /= 4", "{0} **= 2", "{0} //= 2"),
    *("{0}[0] = 5", "{0}[...] = 1.5", "{0}[:1] += 2", "{0}[-1] *= 3", "{0}[{0} > 0] = 0"),
    *("{0}[0].add_(7)", "{0}[1:].mul_(2)", "{0}.view(-1)[2] = 8", "{0}.view(-1).add_(1)"),
    *("{0}.data[0] = 4", "{0}.t()[0] = 6", "{0}[0] = {0}[1]", "{0}[:] = {0} + 1"),
    *("{0}.data = {0}.data * 2", "{0}.data *= 2", "{0}.unsqueeze(0).mul_(3)"),
    *("del {0}", "{0} = {0} + 1", "{0}[0], {0}[1] = 1, 2"),
]
#: How an expression stands: {0} is the expression.
FORMS = {
    "statement": "{0}",
    "bound": "r = {0}",
    "bound to itself": "x = {0}",
    "in an expression": "r = {0} + w",
    "argument": "r = torch.sum({0})",
    "method": "r = {0}.sum()",
    "printed": "print({0}.shape)",
    "in a list": "r = [{0}, w]",
    "if": "if w.sum() > 0:\n    {0}",
    "loop": "for step in range(3):\n    {0}",
    "loop bound": "for step in range(2):\n    r = {0}",
    "while": "n = 0\nwhile n < 2:\n    {0}\n    n += 1",
    "no_grad": "with torch.no_grad():\n    {0}",
    "try": "try:\n    {0}\nfinally:\n    done = True",
    "comprehension": "r = [{0} for _ in range(2)]",
    "comprehension's sums": "r = sum([{0}.sum() for _ in range(2)])",
    "class": "class Kept:\n    r = {0}",
    "walrus": "r = (q := {0}) * 2",
    "several": "r = s = {0}",
    "annotated": "r: torch.Tensor = {0}",
    "lambda": "f = lambda: {0}\nf()\nr = f()",
    "assert": "assert {0} is not None",
    "main": "if __name__ == '__main__':\n    r = {0}",
    "subscript": "r = {0}[0]",
    "conditional": "r = {0} if w.sum() > 0 else w",
}
BLOCKS = ("statement", "if", "loop", "while", "no_grad", "try")
#: What the statement writes into; loops through what holds x are forms of their own.
THROUGH = {
    "x": ("x", "{0}"),
    "y": ("y", "{0}"),
    "row": ("x[0]", "{0}"),
    "loop over list": ("t", "for t in [x, w]:\n    {0}"),
    "loop over rows": ("t", "for t in x:\n    {0}"),
    "element of list": ("held[0]", "held = [x, w]\n{0}"),
    "value of dict": ("held['a']", "held = {{'a': x}}\n{0}"),
    "zip": ("t", "for t, u in zip([x], [w]):\n    {0}"),
}
BEHIND = "after = x * 1\nbeside = y\n"


@dataclass(frozen=True)
class Program:
    """A program, and which parts it was made of."""

    code: str
    parts: str


def programs(number: int, seed: int = SEED) -> list[Program]:
    """Different programs by chance, the same for a seed."""
    chance = random.Random(seed)
    found: dict[str, Program] = {}
    while len(found) < number:
        alias = chance.choice(list(ALIASES))
        through = chance.choice(["x", "x", "x", "y", "y", *THROUGH])
        name, around = THROUGH[through]
        is_value = chance.random() < 0.7
        template = chance.choice(METHODS if is_value else STATEMENTS)
        if through not in ("x", "y") and template.startswith("del"):
            continue
        form = chance.choice(list(FORMS) if is_value else BLOCKS)
        statement = FORMS[form].replace("{0}", template.replace("{0}", name))
        pad = "    " if around.startswith("for") else ""
        body = around.replace("{0}", statement.replace("\n", f"\n{pad}")).replace("{{", "{")
        body = body.replace("}}", "}")
        code = f"{HEAD}\n{ALIASES[alias]}\n\n{body}\n{_behind(template, name)}"
        found[code] = Program(code, f"{alias} | {through} | {template} | {form}")
    return list(found.values())


def _behind(template: str, name: str) -> str:
    lines = BEHIND.splitlines(keepends=True)
    if template.startswith("del"):
        lines = [line for line in lines if f"= {name}" not in line]
    return "".join(lines)


def in_function(program: Program) -> Program:
    """The same statements in a function, whose names become the module's."""
    stored = {
        node.id
        for node in ast.walk(ast.parse(program.code))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    left = stored - {"kept", "q", "step", "_"} - ({"x", "y"} if "\ndel " in program.code else set())
    if "class Kept" in program.code:
        left = left - {"r"} | {"Kept"}
    names = ", ".join(sorted(left))
    head, _, body = program.code.partition("\n\n")
    first, second, *rest = head.splitlines()
    lines = [*rest, *body.splitlines(), f"return {names}"]
    inside = "".join(f"    {line}\n" if line else "\n" for line in lines)
    code = f"{first}\n{second}\n\n\ndef run():\n{inside}\n\n{names} = run()\n"
    return Program(code, program.parts)


RUNNER = """
import contextlib, io, json, runpy, sys, types
from pathlib import Path
if sys.argv[2] == "port":
    sys.modules["torch"] = None
    import mindspore
    Tensor = mindspore.Tensor
else:
    import torch
    Tensor = torch.Tensor
def shown(value, depth=0):
    if isinstance(value, Tensor):
        a = value.detach().numpy() if sys.argv[2] != "port" else value.asnumpy()
        return {"kind": a.dtype.kind, "bytes": a.itemsize, "shape": list(a.shape),
                "values": a.reshape(-1).astype(float).tolist()}
    if isinstance(value, (list, tuple)):
        return [shown(part, depth) for part in value]
    if isinstance(value, dict):
        return [[str(key), shown(part, depth)] for key, part in value.items()]
    if isinstance(value, type) and depth == 0:
        return [[key, shown(part, 1)] for key, part in sorted(vars(value).items())
                if isinstance(part, (Tensor, list, float, int, bool)) and key[:1] != "_"]
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)
    return ""
for path in sorted(Path(sys.argv[1]).glob("p*.py")):
    sys.path.insert(0, str(path.parent))
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            names = runpy.run_path(str(path), run_name="__main__")
        found = {name: shown(value) for name, value in names.items() if name[:1] != "_"
                 and not isinstance(value, (types.ModuleType, types.FunctionType))}
        print(path.stem, json.dumps(found), flush=True)
    except Exception as error:
        print(path.stem, json.dumps(f"raises {type(error).__name__}: {error}"[:300]), flush=True)
"""


def run(folder: Path, side: str) -> dict[str, Any]:
    """What each program of a folder leaves in its names."""
    command = [sys.executable, "-c", RUNNER, str(folder), side]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return {
        line.partition(" ")[0]: json.loads(line.partition(" ")[2])
        for line in done.stdout.splitlines()
    }


def differing(theirs: Any, ours: Any) -> list[str]:
    """The names whose values are not torch's."""
    if isinstance(ours, str):
        return [ours]
    return [name for name, value in theirs.items() if not is_same(ours.get(name), value)]


def judged(chosen: list[Program], *, in_cells: bool) -> list[tuple[Program, str, str, str]]:
    """Each program with what became of it, its detail and its port."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, chosen, in_cells=in_cells)
        report = convert_path(folder / "torch", folder / "port")
        if in_cells:
            read_back(folder / "torch")
            read_back(folder / "port")
        theirs, ours = run(folder / "torch", "torch"), run(folder / "port", "port")
        found = []
        for number, program in enumerate(chosen):
            key = f"p{number:04}"
            port = (folder / "port" / f"{key}.py").read_text(encoding="utf-8")
            kind, detail = _judge(key, theirs[key], ours[key], report)
            found.append((program, kind, detail, port))
    return found


def _judge(key: str, theirs: Any, ours: Any, report: ConvertReport) -> tuple[str, str]:
    if isinstance(theirs, str):
        return "torch raises", theirs
    other = differing(theirs, ours)
    if not other:
        return "same", ""
    said = [
        finding.message
        for file in report.files
        for finding in file.findings
        if Path(file.file).stem == key and finding.code != "internal-error"
    ]
    return ("reported", "; ".join(said)) if said else ("silent", ", ".join(other))


def write(folder: Path, chosen: list[Program], *, in_cells: bool) -> None:
    """Write the programs as files, or as notebooks."""
    (folder / "torch").mkdir()
    for number, program in enumerate(chosen):
        file = folder / "torch" / f"p{number:04}.py"
        if in_cells:
            cells = [part for part in program.code.split("\n\n") if part.strip()]
            file.with_suffix(".ipynb").write_text(notebook(cells), encoding="utf-8")
        else:
            file.write_text(program.code, encoding="utf-8")


def notebook(cells: list[str]) -> str:
    """A notebook of these code cells."""
    made = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"c{number}",
            "metadata": {},
            "outputs": [],
            "source": cell.strip("\n").splitlines(keepends=True),
        }
        for number, cell in enumerate(cells)
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def read_back(folder: Path) -> None:
    """Each notebook's cells in one file, to run them in their order."""
    for path in folder.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = "\n\n".join("".join(cell["source"]) for cell in cells)
        path.with_suffix(".py").write_text(code + "\n", encoding="utf-8")


def main() -> int:
    """Print what is silent, and a table; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=500, help="how many programs")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--cells", action="store_true", help="as notebooks")
    parser.add_argument("--function", action="store_true", help="in the body of a function")
    parser.add_argument("--show", default="silent", help="which programs are printed")
    options = parser.parse_args()
    chosen = programs(options.sample, options.seed)
    if options.function:
        chosen = [in_function(program) for program in chosen]
    found = judged(chosen, in_cells=options.cells)
    for program, kind, detail, port in found:
        if kind in options.show.split(","):
            print(f"==== {kind}: {program.parts}\n{detail}\n--\n{port.partition('* 0.25')[2]}")
    counts = Counter(kind for _, kind, _, _ in found)
    print(f"{len(found)} programs: {dict(counts)}")
    return 1 if counts["silent"] else 0


if __name__ == "__main__":
    sys.exit(main())

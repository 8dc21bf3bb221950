"""The files of a first case: the case with comments, and beside it what it has to call."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isograd.init.offers import Callee, LossCallee, SideFound
from isograd.init.values import MARK
from isograd.verify.arguments import Argument, ContainerSpec, PlainSpec, TensorSpec

MARKS = re.compile(MARK.format(r"-?\d+"))
_TABLES = ("reference", "port")
_STAND_IN = '''
def loss(output):
    """A stand-in, because no loss was found on both sides: put yours here and into the other file.

    Every output counts, each element with another weight.
    """
    total = 0.0
    for tensor in _tensors(output):
        weight = 1.0 + 0.5 * np.sin(np.arange(tensor.size if IS_PORT else tensor.numel()))
        weight = MAKE(weight.astype(np.float32)).reshape(tensor.shape)
        total = total + (FLOAT(tensor) * weight).mean()
    return total


def _tensors(output):
    if isinstance(output, TENSOR):
        return [output] if IS_FLOATING(output) else []
    found = []
    for part in output.values() if isinstance(output, dict) else output:
        if part is not None:
            found = found + _tensors(part)
    return found
'''
_WORDS = {
    "torch": {
        "tensor.size if IS_PORT else tensor.numel()": "tensor.numel()",
        "MAKE": "torch.from_numpy",
        "FLOAT(tensor)": "tensor.float()",
        "IS_FLOATING(output)": "output.is_floating_point()",
        "TENSOR": "torch.Tensor",
    },
    "mindspore": {
        "tensor.size if IS_PORT else tensor.numel()": "tensor.size",
        "MAKE": "mindspore.Tensor",
        "FLOAT(tensor)": "tensor.astype(mindspore.float32)",
        "IS_FLOATING(output)": "output.is_floating_point()",
        "TENSOR": "mindspore.Tensor",
    },
}
_OPTIMIZERS = {
    "torch": "torch.optim.SGD(model.parameters(), lr=0.01)",
    "mindspore": "mindspore.nn.SGD(model.trainable_params(), learning_rate=0.01)",
}


class SideFile:
    """The file beside a case with what one side has to call; not written where names suffice."""

    def __init__(self, side: SideFound, framework: str, path: Path) -> None:
        self.path = path
        self._side = side
        self._framework = framework
        self._functions: list[str] = []
        self._needs_numpy = False

    def name(
        self, key: str, callee: Callee, parameters: Sequence[str], cast: str | None = None
    ) -> str:
        """What the case writes for this callable; a function is added where a name does not do.

        cast: the dtype that its arguments after the first are cast to.
        """
        if callee.name is not None and cast is None:
            return f"{_relative(self._side.path, self.path.parent)}:{callee.name}"
        given = [f"{p}.astype({cast})" if cast else p for p in parameters[1:]]
        code = callee.code
        if callee.name is not None:
            code = f"{self._side.module}.{callee.name}({', '.join([*parameters[:1], *given])})"
        for mark, argument in zip(dict.fromkeys(MARKS.findall(code)), given, strict=False):
            code = code.replace(mark, argument)
        where = f"{self._side.path.name}:{callee.line}" if callee.line else self._side.path.name
        function = "build" if key == "model" else key
        signature = ", ".join(parameters)
        self._functions.append(
            f'def {function}({signature}):\n    """As {where}."""\n    return {code}\n'
        )
        return f"{self.path.name}:{function}"

    def stand_in_loss(self) -> str:
        """A loss for a network whose own was not found."""
        text = _STAND_IN.strip() + "\n"
        for word, meaning in _WORDS[self._framework].items():
            text = text.replace(word, meaning)
        self._needs_numpy = True
        self._functions.append(text)
        return f"{self.path.name}:loss"

    def stand_in_optimizer(self) -> str:
        """Plain SGD."""
        code = _OPTIMIZERS[self._framework]
        self._functions.append(
            'def optimizer(model):\n    """A stand-in: put yours here and into the other file."""\n'
            f"    return {code}\n"
        )
        return f"{self.path.name}:optimizer"

    @property
    def text(self) -> str | None:
        """The file's text, or None where it is not needed."""
        if not self._functions:
            return None
        body = "\n\n".join(self._functions)
        own = self._side.module
        imports = sorted(n for n in self._packages(body) if n.partition(".")[0] != own)
        needs_own = re.search(rf"\b{re.escape(self._side.module)}\.", body) is not None
        lines = [
            f'"""What the case calls for {self._side.path.name}; written by isograd init."""',
            "",
        ]
        folder = _relative(self._side.path.parent, self.path.parent)
        if needs_own and not self._side.path.stem.isidentifier():
            lines.append("import importlib")
        if needs_own and folder != ".":
            lines += ["import sys", "from pathlib import Path", ""]
        lines += [f"import {name}" for name in imports if name != "numpy"]
        if self._needs_numpy:
            lines.append("import numpy as np")
        elif "numpy" in imports:
            lines.append("import numpy")
        if needs_own and folder != ".":
            place = f"Path(__file__).resolve().parent / {folder!r}"
            lines += ["", f"sys.path.insert(0, str({place}))"]
        if needs_own:
            lines.append(self._own_import())
        return "\n".join(lines) + "\n\n\n" + body

    def _own_import(self) -> str:
        stem, module = self._side.path.stem, self._side.module
        if not stem.isidentifier():
            return f"{module} = importlib.import_module({stem!r})"
        return f"import {stem}" if stem == module else f"import {stem} as {module}"

    @staticmethod
    def _packages(body: str) -> set[str]:
        """The packages whose names the functions spell in full."""
        tree = ast.parse(body)
        local = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)} | {"np"}
        local |= {
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_dotted(node):
                parts = ast.unparse(node).split(".")[:-1]
                if parts[0] not in local:
                    packages = itertools.takewhile(lambda part: part.islower(), parts)
                    names.add(".".join(packages))
        return {name for name in names if name}


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def loss_parameters(loss: LossCallee) -> list[str]:
    """The names of a written loss's arguments."""
    if len(loss.targets) <= 1:
        return ["output", *(["target"] * len(loss.targets))]
    return ["output", *(f"target_{i}" for i in range(1, len(loss.targets) + 1))]


def case_text(
    tables: Sequence[tuple[str, dict[str, str]]],
    kwargs: Sequence[dict[str, Any]],
    inputs: tuple[Sequence[Argument], Sequence[str]],
    targets: Sequence[Argument],
    unknown: Sequence[str],
) -> str:
    """The case file.

    tables: framework and callables of the reference and of the port; kwargs: of their models;
    inputs: with a comment for each; unknown: what a person should look at.
    """
    lines = [
        "# Written by isograd init; docs/case.md lists every key.",
        "# isograd verify runs it.",
    ]
    if unknown:
        lines += ["#", "# To look at:", *(f"# - {' '.join(one.split())}" for one in unknown)]
    lines.append("")
    for key, (framework, names), arguments in zip(_TABLES, tables, kwargs, strict=True):
        lines += _side_lines(key, framework, names, arguments)
    lines.append("# The network's arguments, in order.")
    for argument, comment in zip(*inputs, strict=True):
        lines += _argument_lines("inputs", argument, comment)
    if targets:
        lines.append("# The loss's arguments after the output.")
    for argument in targets:
        lines += _argument_lines("targets", argument, "")
    lines += ["[verify]", 'mode = "both"', "steps = 3", ""]
    return "\n".join(lines)


def _side_lines(
    key: str, framework: str, names: dict[str, str], kwargs: dict[str, Any]
) -> list[str]:
    """The table of one side."""
    lines = [f"[{key}]", f'framework = "{framework}"']
    lines += [f"{word} = {json.dumps(name)}" for word, name in names.items()]
    if kwargs:
        lines += ["", f"[{key}.kwargs]"]
        lines += [f"{word} = {_toml(value)}" for word, value in kwargs.items()]
    return [*lines, ""]


def _argument_lines(key: str, argument: Argument, comment: str) -> list[str]:
    """One entry of inputs or targets."""
    lines = [f"[[{key}]]" + (f"  # {comment}" if comment else "")]
    return [*lines, *(f"{word} = {text}" for word, text in _entry(argument).items()), ""]


def _entry(argument: Argument) -> dict[str, str]:
    name = {"name": json.dumps(argument.name)} if argument.name else {}
    if isinstance(argument, PlainSpec):
        if argument.value is None:
            return {"none": "true", **name}
        return {"value": _toml(argument.value), **name}
    if isinstance(argument, ContainerSpec):
        parts = [_inline(_entry(part)) for part in argument.parts]
        if argument.kind == "dict":
            pairs = [f"{json.dumps(k)} = {p}" for k, p in zip(argument.keys, parts, strict=True)]
            return {"dict": "{ " + ", ".join(pairs) + " }", **name}
        return {argument.kind: "[" + ", ".join(parts) + "]", **name}
    return {**_tensor(argument), **name}


def _tensor(spec: TensorSpec) -> dict[str, str]:
    found = {"shape": str(list(spec.shape)), "dtype": json.dumps(spec.dtype)}
    if spec.fill is not None:
        found["fill"] = json.dumps(spec.fill)
    for word in ("low", "high"):
        bound = getattr(spec, word)
        if bound is not None:
            found[word] = repr(int(bound) if float(bound).is_integer() else bound)
    return found


def _inline(entry: dict[str, str]) -> str:
    return "{ " + ", ".join(f"{word} = {text}" for word, text in entry.items()) + " }"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path.resolve(), folder.resolve())

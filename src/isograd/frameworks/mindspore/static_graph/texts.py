"""Functions that are written as text for MindSpore's compiler, which reads a function's file.

What a network takes and returns is known from an eager run, so the text names each tensor by its
place: ``output[1]['mask']``.  Nothing has to be flattened inside the graph.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import sys
import tempfile
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isograd.frameworks.mindspore.observe import is_tensor
from isograd.frameworks.scratch import scratch_prefix
from isograd.tree import MAX_DEPTH


class Texts:
    """A folder of functions made from text; whoever started the process clears it."""

    def __init__(self) -> None:
        #: Where the texts lie.
        self.folder = Path(tempfile.mkdtemp(prefix=scratch_prefix(os.getpid())))
        self._count = 0

    def function(self, text: str, name: str, space: dict[str, Any]) -> Callable[..., Any]:
        """The function of this name that the text defines, in a module that holds `space`.

        The compiler looks names up in the module that a function names, so there is one.
        """
        module = types.ModuleType(f"isograd_text_{self._count}")
        vars(module).update(space)
        sys.modules[module.__name__] = module
        return self._defined(text, name, vars(module))

    def _defined(self, text: str, name: str, space: dict[str, Any]) -> Callable[..., Any]:
        path = self.folder / f"text_{self._count}.py"
        self._count += 1
        path.write_text(text, encoding="utf-8")
        found: dict[str, Any] = {}
        exec(compile(text, str(path), "exec"), space, found)  # noqa: S102 - isograd's own text
        function: Callable[..., Any] = found[name]
        return function

    def remade(self, function: types.FunctionType, node: ast.FunctionDef) -> Callable[..., Any]:
        """A function with the globals and the closure of another one, and this definition."""
        free = function.__code__.co_freevars
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        plain = ast.FunctionDef(**{f: getattr(node, f) for f in node._fields if hasattr(node, f)})
        plain.decorator_list = []
        body = textwrap.indent(ast.unparse(ast.fix_missing_locations(plain)), "    ")
        text = f"def _make({', '.join(free)}):\n{body}\n    return {node.name}\n"
        make = self._defined(text, "_make", function.__globals__)
        made: Callable[..., Any] = make(*cells)
        return made


def paths_of(value: Any, text: str) -> list[str]:
    """Where the tensors of a nested value are, as expressions in `text`."""
    return [path for path, _ in walk(value, text)]


def walk(value: Any, text: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The tensors of a nested value with their expressions, in the order of `tree.flatten`."""
    if is_tensor(value):
        yield text, value
    elif depth > MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from walk(part, f"{text}[{key!r}]", depth + 1)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for name, part in zip(value._fields, value, strict=True):
            yield from walk(part, f"{text}.{name}", depth + 1)
    elif isinstance(value, (tuple, list)):
        for index, part in enumerate(value):
            yield from walk(part, f"{text}[{index}]", depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from walk(getattr(value, field.name), f"{text}.{field.name}", depth + 1)


class CallText:
    """A call's arguments as text, with each tensor as a parameter of the function around it."""

    def __init__(
        self, args: Iterable[Any], kwargs: Mapping[str, Any] | None = None, letter: str = "t"
    ) -> None:
        self._letter = letter
        self.tensors: list[Any] = []
        #: Values that no text names, under the names that the text uses.
        self.space: dict[str, Any] = {}
        parts = [self._text(value) for value in args]
        parts += [f"{name}={self._text(value)}" for name, value in (kwargs or {}).items()]
        self.text = ", ".join(parts)

    @property
    def names(self) -> list[str]:
        """The names of the tensors."""
        return [f"{self._letter}{i}" for i in range(len(self.tensors))]

    def _text(self, value: Any) -> str:
        if is_tensor(value):
            self.tensors.append(value)
            return f"{self._letter}{len(self.tensors) - 1}"
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if type(value) is dict:
            return "{" + ", ".join(f"{k!r}: {self._text(v)}" for k, v in value.items()) + "}"
        if type(value) is list:
            return "[" + ", ".join(map(self._text, value)) + "]"
        if type(value) is tuple:
            return "(" + "".join(f"{self._text(v)}, " for v in value) + ")"
        name = f"{self._letter.upper()}_{len(self.space)}"
        self.space[name] = value
        return name


def definition_of(function: Any) -> tuple[types.FunctionType, ast.FunctionDef, str] | None:
    """A method's plain function, its definition, and the file; None where there is no source."""
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(plain, types.FunctionType):
        return None
    file = plain.__code__.co_filename
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == plain.__name__:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == plain.__code__.co_firstlineno:
                return plain, node, file
    return None

"""Gradients that a step takes of gradients, written as functions of what they are taken by.

`torch.autograd.grad(score, mixed, create_graph=True)` asks what was recorded; MindSpore takes the
gradient of a function, and gradients of that where the whole is compiled (2.10; in PyNative mode
they are wrong).  So what computes `score` from `mixed` becomes a function.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from isograd.convert.training.inner_gradient_places import DEFINITIONS, Place, bound_in, is_constant
from isograd.convert.training.paths import BUILTINS, path_of, read_by
from isograd.convert.training.rewrite import Rewritten, edited_again

_MOST = 50


@dataclass(frozen=True)
class Inner:
    """A function whose gradient is taken, and the paths that it calls.

    is_again: whether it computes once more what stands beside it.
    """

    function: str
    called: frozenset[str]
    is_again: bool

    def statements(self, tree: ast.Module) -> list[ast.stmt]:
        """Those of the function."""
        found = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
        return [part for node in found if node.name == self.function for part in node.body]


@dataclass
class WithFunctions:
    """A file whose gradients of gradients are functions; inner: those functions."""

    text: str
    new: Rewritten | None = None
    inner: list[Inner] = field(default_factory=list)

    def edit(self, edits: list[tuple[int, int, str]]) -> None:
        """Write parts of the text anew."""
        self.new = edited_again(self.new, self.text, edits)
        self.text = self.new.text


def with_functions(text: str) -> WithFunctions | None:
    """A file with each call as the gradient of a function; None where one cannot be so."""
    found = WithFunctions(text)
    for _ in range(_MOST):
        place = _Writer.first(found.text)
        if place is None:
            return found
        if not place.is_understood:
            return None
        found.inner.append(Inner(place.name, place.called, is_again=not place.moves))
        found.edit(place.edits())
    return None


class _Writer(Place):
    """Writes the function of a place, and the call of its gradient."""

    @property
    def name(self) -> str:
        """The function's: `score_of_mixed`."""
        return self._name("_".join((*self._words(), "of", *self.inputs)))

    def edits(self) -> list[tuple[int, int, str]]:
        """The function, the call of its gradient, and what is left out for them."""
        given = ", ".join(self.inputs)
        name = self.name
        places = "" if len(self.inputs) == 1 else f", {tuple(range(len(self.inputs)))}"
        taken = f"_isograd_grad{'s' if places else ''}({name}{places})({given})"
        edits = self._left_out()
        if self.is_of_step:
            others = self._others()
            helper = self._name(f"gradient_of_{name}")
            at = self._outermost()
            inner = textwrap.indent(self._function(name), "    ")
            every = ", ".join((*self.inputs, *others))
            typed = ", ".join((self._typed, *others))
            lines = f"def {helper}({typed}):\n{inner}    return {taken}\n\n\n"
            edits.append((at, at, self._ended(lines)))
            taken = f"{helper}({every})"
        else:
            at = self.text.line_start(self.statement.lineno)
            start = self.text.span(self.statement)[0]
            indent = self.text.original[at:start]
            lines = textwrap.indent(self._function(name), indent)
            edits.append((at, at, self._ended(lines)))
        edits.append(self._replaced(taken))
        return edits

    def _replaced(self, taken: str) -> tuple[int, int, str]:
        """The call, with `[0]` behind it, where one gradient is taken."""
        parent = self.tree.parents[self.call]
        if len(self.inputs) > 1:
            return (*self.text.span(self.call), taken)
        if isinstance(parent, ast.Subscript) and is_constant(parent.slice, 0):
            return (*self.text.span(parent), taken)
        return (*self.text.span(self.call), f"({taken},)")

    @property
    def _typed(self) -> str:
        """The inputs as parameters."""
        torch = next((own for own, full in self.file.imports.items() if full == "torch"), "")
        return ", ".join(f"{one}: {torch}.Tensor" if torch else one for one in self.inputs)

    def _function(self, name: str) -> str:
        """The function whose gradient is taken."""
        lines = [f"def {name}({self._typed}):\n"]
        lines += [textwrap.indent(self._dedented(one), "    ") for one in self.needed]
        output = self._source(self.output)
        if self.weights is not None:
            output = f"({output}) * ({self._source(self.weights)})"
        return "".join((*lines, f"    return _isograd_sum({output})\n"))

    def _dedented(self, statement: ast.stmt) -> str:
        end = self.text.span(statement)[1]
        begin = self.text.line_start(statement.lineno)
        lines = self.text.original[begin:end].replace(self.text.newline, "\n")
        return f"{textwrap.dedent(lines)}\n"

    def _source(self, node: ast.AST) -> str:
        start, end = self.text.span(node)
        return self.text.original[start:end].replace(self.text.newline, "\n")

    def _left_out(self) -> list[tuple[int, int, str]]:
        """The lines of statements that move."""
        if not self.moves:
            return []
        return [
            (self.text.line_start(one.lineno), self.text.line_start((one.end_lineno or 0) + 1), "")
            for one in self.needed
        ]

    def _others(self) -> list[str]:
        """What else the function reads, but what the module defines or imports."""
        nodes = [*self.needed, self.output, *([self.weights] if self.weights is not None else [])]
        read = read_by(*nodes) - {name for one in self.needed for name in bound_in(one)}
        defined = {
            name
            for node in self.tree.module.body
            if isinstance(node, DEFINITIONS)
            for name in _defined(node)
        }
        return sorted(read - defined - BUILTINS - {*self.inputs})

    def _outermost(self) -> int:
        """Where the statement of the module begins that holds the call."""
        top: ast.AST = self.statement
        while self.tree.parents[top] is not self.tree.module:
            top = self.tree.parents[top]
        assert isinstance(top, ast.stmt)
        decorators = [part.lineno for part in getattr(top, "decorator_list", [])]
        return self.text.line_start(min([top.lineno, *decorators]))

    def _words(self) -> list[str]:
        name = path_of(self.output).rpartition(".")[2]
        return [name if name.isidentifier() else "value"]

    def _name(self, wanted: str) -> str:
        used = self.tree.used | self.tree.stored
        while wanted in used:
            wanted += "_"
        return wanted

    def _ended(self, lines: str) -> str:
        return lines.replace("\n", self.text.newline)


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((part.asname or part.name).partition(".")[0] for part in node.names)
    else:
        yield node.name  # type: ignore[attr-defined]  # a function or a class

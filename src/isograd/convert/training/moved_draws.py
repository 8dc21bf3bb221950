"""Numbers that Python or numpy draws at the start of a function, as an argument of its calls.

def penalty(critic, real, fake):
    alpha = Tensor(np.random.random((real.size(0), 1, 1, 1)))
    ...

penalty(critic, real, fake, Tensor(np.random.random((real.size(0), 1, 1, 1))))

A compiled step would draw once.  An argument of a call in the step is computed before each step.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from isograd.convert.text import Text
from isograd.convert.training.paths import path_of
from isograd.convert.tree import Tree, read_tree
from isograd.static_graph.scope import FileScope

#: A text without this has no such numbers.
WORD = "random"
_DRAWING = ("numpy.random.", "random.")
_NOT_DRAWING = frozenset(("seed", "RandomState", "default_rng", "Generator", "Random", "shuffle"))


def moved_draws(
    text: str, tree: ast.Module, is_taken: Callable[[str], bool]
) -> list[tuple[int, int, str]]:
    """The edits of a file; is_taken: whether other files of the project use a name."""
    return _Reader(read_tree(tree, frozenset()), Text(text)).edits(is_taken)


@dataclass
class _Reader:
    """One file."""

    tree: Tree
    text: Text

    def edits(self, is_taken: Callable[[str], bool]) -> list[tuple[int, int, str]]:
        """Replacements by their places in the text."""
        self.file = FileScope(self.tree.module)
        found: list[tuple[int, int, str]] = []
        for function in self.tree.module.body:
            own = self._edits(function) if isinstance(function, ast.FunctionDef) else []
            if own and not is_taken(function.name):  # type: ignore[attr-defined]  # a function
                found += own
        return found

    def _edits(self, function: ast.FunctionDef) -> list[tuple[int, int, str]]:
        draws = self._draws(function)
        given = function.args
        plain = [part.arg for part in given.args]
        is_plain = not (given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg)
        if not draws or not is_plain or given.defaults or not plain or function.decorator_list:
            return []
        read = {n.id for _, value in draws for n in ast.walk(value) if isinstance(n, ast.Name)}
        calls = self._calls(function, len(plain))
        if not calls or not all(self._is_same(c, plain, read) for c in calls):
            return []
        names = [target for target, _ in draws]
        if len({*names, *plain}) < len(names) + len(plain):
            return []
        end = self.text.span(given.args[-1])[1]
        found = [(end, end, "".join(f", {name}" for name in names))]
        found += map(self.text.without, self._statements(function))
        for call in calls:
            by_name = dict(zip(plain, map(self._source, call.args), strict=True))
            new = "".join(f", {self._with(value, by_name)}" for _, value in draws)
            at = self.text.span(call.args[-1])[1]
            while self.text.original[at] in " \t)" and self._is_inside(at, call):
                at += 1
            found.append((at, at, new))
        return found

    def _is_inside(self, at: int, call: ast.Call) -> bool:
        """Whether a place is before the bracket that closes a call."""
        return at < self.text.span(call)[1] - 1

    def _statements(self, function: ast.FunctionDef) -> list[ast.Assign]:
        """The statements at the start of a function that draw."""
        body = function.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        found: list[ast.Assign] = []
        for statement in body:
            is_draw = isinstance(statement, ast.Assign) and self._is_draw(statement.value)
            if not is_draw or not isinstance(statement.targets[0], ast.Name):  # type: ignore[attr-defined]
                break
            found.append(statement)  # type: ignore[arg-type]  # as asked
        is_all = len(found) == len(body)
        return [] if is_all or any(len(one.targets) > 1 for one in found) else found

    def _draws(self, function: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
        """The names and values of what a function draws at its start, and nowhere else."""
        statements = self._statements(function)
        rest = [one for one in function.body if one not in statements]
        names = {one.targets[0].id for one in statements}  # type: ignore[attr-defined]  # names
        own = {name for one in function.body for name in _bound_in(one)}
        read = {n.id for one in statements for n in ast.walk(one.value) if isinstance(n, ast.Name)}
        is_late = any(self._is_drawing(node) for one in rest for node in ast.walk(one))
        inner = (n for one in rest for n in ast.walk(one))
        is_late |= any(isinstance(n, (ast.Global, ast.Nonlocal, ast.NamedExpr)) for n in inner)
        # What else the function binds is another value there, or one of the module's here.
        if is_late or read & own or len(names) < len(statements):
            return []
        return [(one.targets[0].id, one.value) for one in statements]  # type: ignore[attr-defined]

    def _is_draw(self, value: ast.expr) -> bool:
        nodes = [*ast.walk(value)]
        has_own = any(
            isinstance(n, (ast.Lambda, ast.NamedExpr, ast.comprehension, ast.Await)) for n in nodes
        )
        return not has_own and any(map(self._is_drawing, nodes))

    def _is_drawing(self, node: ast.AST) -> bool:
        api = self.file.qualified(node.func) if isinstance(node, ast.Call) else ""
        return api.startswith(_DRAWING) and api.rpartition(".")[2] not in _NOT_DRAWING

    def _calls(self, function: ast.FunctionDef, count: int) -> list[ast.Call]:
        """All calls of a function, which are outside of it; none where it is used otherwise."""
        found: list[ast.Call] = []
        nodes = self.tree.walked(self.tree.module)
        inside = {*ast.walk(function)}
        if function.name in self.tree.stored or self._is_defined_twice(function.name):
            return []
        for node in nodes:
            is_word = isinstance(node, ast.Constant) and node.value == function.name
            if is_word or (isinstance(node, ast.arg) and node.arg == function.name):
                return []
            if not isinstance(node, ast.Name) or node.id != function.name:
                continue
            call = self.tree.parents[node]
            if not isinstance(call, ast.Call) or call.func is not node or node in inside:
                return []
            has_star = any(isinstance(part, ast.Starred) for part in call.args)
            if call.keywords or has_star or len(call.args) != count:
                return []
            found.append(call)
        return found

    def _is_defined_twice(self, name: str) -> bool:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        nodes = self.tree.walked(self.tree.module)
        return sum(isinstance(n, kinds) and n.name == name for n in nodes) > 1

    def _is_same(self, call: ast.Call, plain: list[str], read: set[str]) -> bool:
        """Whether what a draw reads is the same at a call, and nothing there draws later.

        An argument may be evaluated twice where it is a path.
        """
        paths = [argument for name, argument in zip(plain, call.args, strict=True) if name in read]
        scope = self.tree.scope(call)
        others = {name for name in read if name not in plain}
        bound = _bound_in(scope)
        bound |= {n.arg for n in ast.walk(scope) if isinstance(n, ast.arg)}
        is_hidden = scope is not self.tree.module and bool(others & bound)
        return all(map(path_of, paths)) and not is_hidden

    def _source(self, node: ast.AST) -> str:
        start, end = self.text.span(node)
        return self.text.original[start:end]

    def _with(self, value: ast.expr, by_name: dict[str, str]) -> str:
        """An expression with the arguments of a call in place of a function's parameters."""
        text = self._source(value)
        first = self.text.span(value)[0]
        names = [n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id in by_name]
        for node in sorted(names, key=lambda n: self.text.span(n)[0], reverse=True):
            start, end = self.text.span(node)
            text = text[: start - first] + by_name[node.id] + text[end - first :]
        return text


def names_used(tree: ast.Module) -> set[str]:
    """The names and attributes of a file, and what it imports."""
    nodes = [*ast.walk(tree)]
    found = {getattr(node, "attr", "") or getattr(node, "id", "") for node in nodes}
    return found | {node.name for node in nodes if isinstance(node, ast.alias)}


def _bound_in(top: ast.AST) -> set[str]:
    """The names that are bound in a node."""
    names = (node for node in ast.walk(top) if isinstance(node, ast.Name))
    return {node.id for node in names if not isinstance(node.ctx, ast.Load)}

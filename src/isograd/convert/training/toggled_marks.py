"""`for p in critic.parameters(): p.requires_grad = False`, and True again, in each round of a loop.

    for p in critic.parameters():
        p.requires_grad = True
    critic.zero_grad()
    critic_loss(critic, real, generator(z).detach()).backward()
    optimizer_of_critic.step()
    for p in critic.parameters():
        p.requires_grad = False
    generator.zero_grad()
    (-critic(generator(z)).mean()).backward()
    optimizer_of_generator.step()

A compiled step takes gradients by the parameters of its own optimizer alone.  So these marks change
nothing where an optimizer of the network steps between True and False only, by gradients that are
zeroed there, and nothing else says what learns.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from isograd.convert.text import Text
from isograd.convert.training.names import SCHEDULES, is_of_optimizers
from isograd.convert.training.paths import method_of, path_of
from isograd.convert.tree import Tree, read_tree
from isograd.static_graph.scope import FileScope

WORD = "requires_grad"
_MARKS = ("requires_grad", "requires_grad_")
_Holder = ast.For | ast.While | ast.FunctionDef


@dataclass(frozen=True)
class _Toggle:
    """A statement that says of all parameters of a network whether they learn."""

    statement: ast.stmt
    network: str
    learns: bool


def toggled_marks(text: str, tree: ast.Module) -> list[tuple[int, int, str]]:
    """The edits that leave out such statements, and the functions that they call."""
    return _Reader(read_tree(tree, frozenset()), Text(text), FileScope(tree)).edits()


def steps_elsewhere(tree: ast.Module) -> bool:
    """Whether a file steps an optimizer, or says of anything whether it learns."""
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.arg or "" for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    return not names.isdisjoint((*_MARKS, "step"))


@dataclass
class _Reader:
    """One file."""

    tree: Tree
    text: Text
    file: FileScope

    def edits(self) -> list[tuple[int, int, str]]:
        """What is left out; nothing where any of the marks may matter."""
        helpers = {
            node.name: node
            for node in self.tree.module.body
            if isinstance(node, ast.FunctionDef) and _is_helper(node)
        }
        toggles = [
            one
            for node in self.tree.walked(self.tree.module)
            if isinstance(node, ast.stmt)
            for one in [self._toggle(node, helpers)]
            if one is not None
        ]
        inside = {part for one in toggles for part in ast.walk(one.statement)}
        inside |= {part for helper in helpers.values() for part in ast.walk(helper)}
        nodes = [n for n in self.tree.walked(self.tree.module) if n not in inside]
        if not toggles or any(_says_what_learns(node, helpers) for node in nodes):
            return []
        by_network: dict[str, list[_Toggle]] = {}
        for one in toggles:
            by_network.setdefault(one.network, []).append(one)
        if not all(self._change_nothing(*pair) for pair in by_network.items()):
            return []
        gone = [*(one.statement for one in toggles), *helpers.values()]
        return [self._without(statement, {*gone}) for statement in gone]

    def _toggle(self, node: ast.stmt, helpers: dict[str, ast.FunctionDef]) -> _Toggle | None:
        """What a statement says; None where it is another one."""
        if isinstance(node, ast.For):
            network, said = _marked(node)
            if not isinstance(said, ast.Constant) or not isinstance(said.value, bool):
                return None
            return _Toggle(node, network, said.value)
        call = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(call, ast.Call) or call.keywords or not call.args:
            return None
        last = call.args[-1]
        if not isinstance(last, ast.Constant) or not isinstance(last.value, bool):
            return None
        network = path_of(call.args[0]) if len(call.args) == 2 else ""
        if isinstance(call.func, ast.Name) and call.func.id in helpers and network:
            return _Toggle(node, network, last.value)
        return None

    def _change_nothing(self, network: str, toggles: list[_Toggle]) -> bool:
        """Whether a network learns wherever one of its optimizers takes a step."""
        holders = {self.tree.parents[one.statement] for one in toggles}
        holder = next(iter(holders))
        if len(holders) != 1 or not isinstance(holder, _Holder):
            return False
        if any(path_of(node) == network for node in ast.walk(holder) if _is_bound(node)):
            return False
        learning: set[ast.AST] = set()
        statements = {one.statement: one.learns for one in toggles}
        if not set(statements) <= {*holder.body}:
            return False
        part: list[ast.stmt] = []
        learns = False  # a round may begin as one before has ended
        for statement in (*holder.body, None):
            if statement is None or statement in statements:
                if learns and not self._zeroes(part, network):
                    return False
                learning |= {node for s in part for node in ast.walk(s)} if learns else set()
                part, learns = [], statements.get(statement, False)  # type: ignore[arg-type] # None is no key
            elif statement is not None:
                part.append(statement)
        calls = [n for n in self.tree.walked(self.tree.module) if isinstance(n, ast.Call)]
        steps = [call for call in calls if method_of(call)[1] == "step"]
        return all(call in learning or self._is_of_others(call, network) for call in steps)

    def _zeroes(self, part: list[ast.stmt], network: str) -> bool:
        """Whether statements zero what its optimizers step by, before they take gradients."""
        calls = [node for s in part for node in ast.walk(s) if isinstance(node, ast.Call)]
        first = min((c.lineno for c in calls if method_of(c)[1] == "backward"), default=0)
        zeroed = {
            method_of(c)[0]
            for c in calls
            if method_of(c)[1] == "zero_grad" and c.lineno < first and self._is_always(c, part)
        }
        steps = [
            c for c in calls if method_of(c)[1] == "step" and not self._is_of_others(c, network)
        ]
        return all(zeroed & {network, method_of(call)[0]} for call in steps)

    def _is_always(self, call: ast.Call, part: list[ast.stmt]) -> bool:
        """Whether a call stands under no condition, but perhaps in a loop."""
        around = [self.tree.statement(call)]
        while around[-1] not in part:
            above = self.tree.parents[around[-1]]
            if not isinstance(above, (ast.For, ast.While)):
                return False
            around.append(above)
        return isinstance(around[0], ast.Expr) and around[0].value is call

    def _is_of_others(self, call: ast.Call, network: str) -> bool:
        """Whether a step is one of an optimizer of other networks, or of a schedule."""
        made = self._values_of(method_of(call)[0])
        return bool(made) and not call.args and all(self._has_others(one, network) for one in made)

    def _has_others(self, made: ast.expr | None, network: str) -> bool:
        if not isinstance(made, ast.Call) or not made.args:
            return False
        api = self.file.qualified(made.func)
        if api.startswith(SCHEDULES):
            return True
        owner, method = method_of(made.args[0])
        if not is_of_optimizers(api) or method != "parameters":
            return False
        values = self._values_of(owner)
        return (
            owner != network
            and None not in self._values_of(network)  # an argument may be any network
            and bool(values)
            and not any(
                not isinstance(value, ast.Call) or self._may_hold(value, network)
                for value in values
            )
        )

    def _may_hold(self, value: ast.expr, network: str) -> bool:
        """Whether an expression has a network in it, or an object that holds it."""
        for node in ast.walk(value):
            if path_of(node) == network:
                return True
            is_whole = isinstance(node, ast.Name) and "." in network
            if is_whole and network.startswith(f"{node.id}."):  # type: ignore[attr-defined]  # a name
                if not isinstance(self.tree.parents[node], ast.Attribute):
                    return True
        return False

    def _values_of(self, path: str) -> list[ast.expr | None]:
        """All that the file binds to a path; None for what is no plain assignment's value."""
        if not path:
            return []
        return [
            parent.value if isinstance(parent, ast.Assign) and node in parent.targets else None
            for node in self.tree.walked(self.tree.module)
            if (_is_bound(node) and path_of(node) == path) or getattr(node, "arg", "") == path
            for parent in [self.tree.parents[node]]
            if not isinstance(node, ast.keyword)
        ]

    def _without(self, statement: ast.stmt, gone: set[ast.stmt]) -> tuple[int, int, str]:
        """The edit that leaves a statement out."""
        parent = self.tree.parents[statement]
        block = next(
            value
            for _, value in ast.iter_fields(parent)
            if isinstance(value, list) and statement in value
        )
        return self.text.without(statement, is_needed=all(part in gone for part in block))


def _marked(loop: ast.For) -> tuple[str, ast.expr | None]:
    """The network whose parameters a loop marks, and with what; empty for other loops."""
    call, (network, method) = loop.iter, method_of(loop.iter)
    is_plain = isinstance(loop.target, ast.Name) and len(loop.body) == 1 and not loop.orelse
    if not isinstance(call, ast.Call) or not network or method != "parameters" or not is_plain:
        return "", None
    if call.args or call.keywords:
        return "", None
    statement = loop.body[0]
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
        said: ast.expr | None = statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        target = statement.value.func
        given = [*statement.value.args, *(word.value for word in statement.value.keywords)]
        said = given[0] if len(given) == 1 else None
    else:
        return "", None
    wanted = _MARKS[0] if isinstance(statement, ast.Assign) else _MARKS[1]
    is_own = path_of(target) == f"{loop.target.id}.{wanted}"  # type: ignore[attr-defined]  # a name
    return (network, said) if is_own and said is not None else ("", None)


def _is_helper(function: ast.FunctionDef) -> bool:
    """`def learns(net, flag): for p in net.parameters(): p.requires_grad = flag`."""
    given = [part.arg for part in function.args.args]
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    is_plain = len(given) == 2 and not function.decorator_list
    if not is_plain or len(body) != 1 or not isinstance(body[0], ast.For):
        return False
    network, said = _marked(body[0])
    every = [part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)]
    return every == given and [network, path_of(said) if said is not None else ""] == given


def _says_what_learns(node: ast.AST, helpers: dict[str, ast.FunctionDef]) -> bool:
    """Whether a node asks or says what learns, or names a function that does."""
    if isinstance(node, ast.Name):
        return node.id in helpers
    return getattr(node, "attr", getattr(node, "arg", "")) in _MARKS


def _is_bound(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))

"""Loops in which several networks learn in turn: each loss is followed by one optimizer's step."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from isograd.convert.file import FileEdit
from isograd.convert.training.freedom import Freedom, tainted_in
from isograd.convert.training.model import EagerError, Repeated
from isograd.convert.training.paths import bound_by, method_of


@dataclass(frozen=True)
class Turn:
    """The lines of a loop that make one step: behind `first`, up to `last`.

    is_alone: the loop has no other step.
    """

    first: int
    last: int
    is_alone: bool = True

    def holds(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a statement or an expression begins in these lines."""
        return self.first < node.lineno <= self.last


def turn_of(call: ast.Call, calls: list[ast.Call], loop: Repeated, zeroed: set[str]) -> Turn:
    """The turn of a `backward()` in its loop; raises EagerError where one has no step.

    calls: those of the loop.  zeroed: the paths whose `zero_grad()` is called.
    """
    calls = sorted(calls, key=lambda one: one.lineno)
    losses = [one.lineno for one in calls if method_of(one)[1] == "backward"]
    if len(losses) == 1:
        assert loop.end_lineno is not None
        return Turn(loop.lineno, loop.end_lineno)
    steps = [
        one.lineno
        for one in calls
        for path, method in [method_of(one)]
        if method == "step" and path in zeroed
    ]
    both = [line for pair in zip(losses, steps, strict=False) for line in pair]
    if len(losses) != len(steps) or any(after <= before for before, after in pairwise(both)):
        raise EagerError(call, "the loop takes gradients in several places for one step")
    place = losses.index(call.lineno)
    return Turn(steps[place - 1] if place else loop.lineno, steps[place], is_alone=False)


def look_at_shared_graphs(
    file: FileEdit, before: list[ast.stmt], forward: Iterable[ast.AST]
) -> None:
    """Raise EagerError where a loss goes back through what another turn has computed.

    before: statements of earlier turns.  What is read of them by `detach()` is a value.
    """
    tainted = {
        name for s, yes in tainted_in(before, Freedom(file)).items() if yes for name in bound_by(s)
    }
    for top in forward:
        for node in ast.walk(top):
            if not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                continue
            if node.id in tainted and not _is_detached(node, file):
                raise EagerError(node, f"the graph of {node.id} is shared by two losses")


def _is_detached(node: ast.Name, file: FileEdit) -> bool:
    parent = file.tree.parents[node]
    above = file.tree.parents[parent]
    return (
        isinstance(parent, ast.Attribute)
        and parent.attr == "detach"
        and isinstance(above, ast.Call)
        and above.func is parent
    )

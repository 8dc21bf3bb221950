"""`requires_grad = False` within the loop of a step, where the optimizer was made before it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

from isograd.convert.training.refusals import freezes

_PACKAGE = "optim"


class _Project(Protocol):
    """What is asked of `late_changes.Project`."""

    def reached(self, starts: Iterable[ast.AST]) -> Collection[ast.AST]:
        """The functions that nodes call."""

    def qualified(self, node: ast.AST) -> str:
        """The dotted name that an expression means by its file's imports."""


def frozen_in_loops(
    loops: Iterable[ast.AST], computed: Collection[ast.AST], project: _Project
) -> Iterator[ast.AST]:
    """What says in a loop around a step that a part learns no more.

    A loop that makes the optimizer, too, gives it what learns by then.  computed: functions that
    are part of the step.
    """
    for loop in loops:
        regions = [loop, *(one for one in project.reached([loop]) if one not in computed)]
        nodes = [node for region in regions for node in ast.walk(region)]
        if not any(
            isinstance(node, ast.Call) and _makes_optimizer(node, project) for node in nodes
        ):
            yield from (node for node in nodes if freezes(node))


def _makes_optimizer(call: ast.Call, project: _Project) -> bool:
    return _PACKAGE in project.qualified(call.func).split(".")[:-1]

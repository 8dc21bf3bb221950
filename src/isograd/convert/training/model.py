"""What a training loop is made of: frozen values."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum


class EagerError(Exception):
    """Why a loop has to stay as it is, at a node of it."""

    def __init__(self, node: ast.AST, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


#: What one step is a round of: a loop, or a function that is called for each batch.
Repeated = ast.For | ast.While | ast.FunctionDef


class Form(Enum):
    """A step for each batch, or gradients of several batches that a later step takes."""

    FUSED = "fused"
    HELD = "held"


class Share(Enum):
    """The place of a loss among those whose gradients one step takes together."""

    WHOLE = "whole"
    FIRST = "first"
    NEXT = "next"
    LAST = "last"


@dataclass(frozen=True)
class Again:
    """What an earlier step of the same round has computed, and a loss goes back through.

    statements: those that are computed once more.  called: the paths of the objects that they call.
    stepped: the paths of the optimizers that have stepped in between.
    """

    statements: tuple[ast.stmt, ...] = ()
    called: tuple[str, ...] = ()
    stepped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clip:
    """`clip_grad_norm_(network.parameters(), bound)`; result: the name that the norm is given.

    behind: what makes its value of the norm: `norm = float(norm)`.
    """

    statement: ast.stmt
    network: str
    bound: str
    by_value: bool
    result: str = ""
    behind: str = ""


@dataclass(frozen=True)
class Descent:
    """A loop over a network's parameters that takes the rate times its gradient off each.

    zeroes: it zeroes the gradients, too.  needs_no_grad: torch refuses it outside of `no_grad`.
    """

    statement: ast.stmt
    network: str
    rate: str
    zeroes: bool
    needs_no_grad: bool = False


@dataclass(frozen=True)
class Branches:
    """A condition of which both branches take the same step, one of them with a scaler.

    scaled, plain: its branches.  scaler: an expression of the scaler, None where it is not used.
    """

    statement: ast.If
    scaled: tuple[ast.stmt, ...]
    plain: tuple[ast.stmt, ...]
    scaler: str

    def are_plain(self, node: ast.AST) -> bool:
        """Whether a node begins in the branch without the scaler."""
        line = getattr(node, "lineno", 0)
        return self.plain[0].lineno <= line <= (self.plain[-1].end_lineno or 0)


@dataclass(frozen=True)
class Phase:
    """The condition under which a loop's step is taken; context: the `with` around both parts."""

    statement: ast.If
    context: ast.With | None

    @property
    def outermost(self) -> ast.stmt:
        """The statement of the loop itself."""
        return self.context or self.statement

    @property
    def inside(self) -> list[ast.stmt]:
        """The statements in their order, without the context and the condition."""
        block = self.context.body if self.context is not None else [self.statement]
        at = block.index(self.statement)
        return [*block[:at], *self.statement.body, *block[at + 1 :]]


@dataclass(frozen=True)
class Reported:
    """A call in a forward part whose method reports something beside its value.

    name: that of what is reported.  report: the call that reports it.  given: names that this call
    reads.  effects: statements that are no part of the step.  edits: what becomes of the methods.
    """

    call: ast.Call
    target: ast.Name
    name: str
    report: str
    given: frozenset[str]
    effects: tuple[ast.stmt, ...]
    edits: tuple[tuple[int, int, str], ...]


@dataclass
class Names:
    """What the forward part reads, by the expression and the name that replaces it.

    objects: networks and losses, which are called.  inputs: all else that changes from outside.
    places: the expressions in the text that a name replaces.  spread: the path of a dictionary that
    a call takes by `**`; the compiler takes a dictionary's tensors for constants, so that the step
    has to take it by `**`, too.  own_calls: what is called in `self(x)`, which the compiler
    refuses, in methods that the forward part calls.  numbers: inputs that are a number of Python's,
    another one in each round.  varying: inputs that may be tuples, which the compiler takes for
    constants, too.  attributes: the names of those that it
    writes to.  lists: by their code what is made before the step, and its name.
    reported: what methods report beside their values.  outside: the nodes of what is computed
    before the step.  elsewhere: functions of other files, with those, that the forward part calls.
    settings: what functions read of objects which the forward part hands to them.
    """

    objects: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    places: list[tuple[ast.expr, str]] = field(default_factory=list)
    spread: str = ""
    own_calls: list[ast.expr] = field(default_factory=list)
    numbers: set[str] = field(default_factory=set)
    varying: set[str] = field(default_factory=set)
    attributes: dict[str, str] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    reported: list[Reported] = field(default_factory=list)
    outside: set[ast.AST] = field(default_factory=set)
    elsewhere: list[tuple[str, ast.FunctionDef]] = field(default_factory=list)
    settings: list[ast.Attribute] = field(default_factory=list)


@dataclass(frozen=True)
class Version:
    """The later value of a name.

    statement: what binds it, as it is in the text.  own: its name in the step.  nodes: the names in
    the text that mean it.  is_kept: it is read outside of the step as well.
    """

    statement: ast.stmt
    name: str
    own: str
    nodes: tuple[ast.Name, ...]
    is_kept: bool


@dataclass(frozen=True)
class StepPlan:
    """One loop or function: what becomes its forward function, and what its step replaces.

    forward: the statements that compute the loss.  call: the one in whose place the step is called.
    loss: what is differentiated.  outputs: names that are read behind the forward part.
    carried: inputs that the step before has made.  removed: zero_grad, backward, unscale_ and, in
    the fused form, step.  update: the statement of the optimizer's step.
    same: networks whose parameters have to be the optimizer's: they are clipped or zeroed for it.
    is_renewed: a call of the loop may change train() or eval(): each round asks for the step anew.
    branches: the condition in which the step stands, of which one branch has no scaler.
    descent: where no optimizer steps, but the loop changes the parameters itself.
    zeroes_late: gradients are zeroed behind `backward()` alone, for the next round.
    beside: the paths of further optimizers that step for the same loss.
    phase: the condition under which the step is taken; else the forward part is computed alone.
    versions: later values of names whose earlier ones are read between.
    share: whether the step takes the gradients of other losses, too, or leaves its own to them.
    again: what the forward part begins with, though the text has it before an earlier step.
    waiting: what stands behind the call of the step, and stood between the forward part's lines.
    zeroed_for: networks that are zeroed in place of the gradients which the optimizer holds.
    """

    loop: Repeated
    form: Form
    forward: tuple[ast.stmt, ...]
    call: ast.stmt
    loss: ast.expr
    outputs: tuple[str, ...]
    carried: frozenset[str]
    names: Names
    optimizer: str
    scaler: str
    clip: Clip | None
    update: ast.stmt
    removed: tuple[ast.stmt, ...]
    scaling: tuple[ast.stmt, ...] = ()
    same: tuple[str, ...] = ()
    is_renewed: bool = False
    branches: Branches | None = None
    descent: Descent | None = None
    zeroes_late: bool = False
    beside: tuple[str, ...] = ()
    phase: Phase | None = None
    versions: tuple[Version, ...] = ()
    share: Share = Share.WHOLE
    again: Again = field(default_factory=Again)
    waiting: tuple[ast.stmt, ...] = ()
    zeroed_for: tuple[ast.expr, ...] = ()

    @property
    def computed(self) -> tuple[ast.stmt, ...]:
        """All statements of the forward part."""
        return (*self.again.statements, *self.forward)

    @property
    def keeps_norm(self) -> bool:
        """Whether the norm of the gradients is a result of the step that takes them."""
        return self.clip is not None and bool(self.clip.result) and self.form is Form.FUSED

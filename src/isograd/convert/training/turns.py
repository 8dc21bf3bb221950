"""Loops with several losses: networks that learn in turn, and losses whose gradients add up."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from isograd.convert.file import FileEdit
from isograd.convert.training.model import EagerError, Repeated, Share
from isograd.convert.training.paths import bound_by, calls_in, method_of

_STEP = "torch.optim.Optimizer.step"
_SCHEDULES = "torch.optim.lr_scheduler"
#: Torch's layers and losses that hold no parameters: one of each round is as good as one of all.
WITHOUT_PARAMETERS = frozenset(
    f"torch.nn.{name}"
    for name in """BCELoss BCEWithLogitsLoss CrossEntropyLoss CTCLoss CosineEmbeddingLoss
    GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss
    MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss
    SmoothL1Loss SoftMarginLoss TripletMarginLoss CosineSimilarity PairwiseDistance Softmax
    LogSoftmax Softmin Sigmoid LogSigmoid Tanh ReLU LeakyReLU ELU SELU GELU SiLU Softplus
    Flatten""".split()
)


@dataclass(frozen=True)
class Turn:
    """The lines of a loop that belong to one loss: behind `first`, up to `last`.

    is_alone: the loop has no other loss.  share: its place among those of one step, which begin
    behind line `begin` and end with the step on line `end`.  stepped: the lines and the paths of
    the optimizers that step before.
    """

    first: int
    last: int
    is_alone: bool = True
    share: Share = Share.WHOLE
    begin: int = 0
    end: int = 0
    stepped: tuple[tuple[int, str], ...] = ()

    def holds(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a statement or an expression begins in these lines."""
        return self.first < node.lineno <= self.last

    def is_of_step(self, node: ast.stmt | ast.expr) -> bool:
        """Whether it begins in the lines of the losses that have one step."""
        if self.is_alone:
            return self.holds(node)
        return self.begin < node.lineno <= self.end


def turn_of(call: ast.Call, calls: list[ast.Call], loop: Repeated, optimizers: set[str]) -> Turn:
    """The turn of a `backward()` in its loop; raises EagerError where one has no step.

    calls: those of the loop.  optimizers: as `optimizers_in`.
    """
    calls = sorted(calls, key=lambda one: one.lineno)
    losses = [one.lineno for one in calls if method_of(one)[1] == "backward"]
    if len(losses) == 1:
        assert loop.end_lineno is not None
        return Turn(loop.lineno, loop.end_lineno)
    events = sorted(
        (one.lineno, path if method == "step" else "")
        for one in calls
        for path, method in [method_of(one)]
        if method == "backward" or (method == "step" and path in optimizers)
    )
    kinds = [(is_step, [*several]) for is_step, several in groupby(events, lambda e: bool(e[1]))]
    lines = [line for line, _ in events]
    steps = [several for is_step, several in kinds if is_step]
    if (
        kinds[-1][0] is False
        or kinds[0][0]
        or len({*lines}) < len(lines)
        or max(map(len, steps)) > 1
    ):
        raise EagerError(call, "the loop takes gradients in several places for one step")
    before = [step for several in steps for step in several if step[0] < call.lineno]
    end = next(step[0] for several in steps for step in several if step[0] > call.lineno)
    begin = before[-1][0] if before else loop.lineno
    own = [line for line in losses if begin < line < end]
    place = own.index(call.lineno)
    is_last = place == len(own) - 1
    share = Share.LAST if is_last else Share.NEXT if place else Share.FIRST
    return Turn(
        own[place - 1] if place else begin,
        end if is_last else call.lineno,
        False,
        share if len(own) > 1 else Share.WHOLE,
        begin,
        end,
        tuple(before),
    )


def optimizers_in(calls: Iterable[ast.Call], file: FileEdit) -> set[str]:
    """The paths of optimizers among those whose `step()` is called.

    calls: those of the scope.  Where networks are zeroed, and what steps is not known, all that
    steps is an optimizer, as long as the file has no schedules.
    """
    found, steps, unknown = set[str](), set[str](), set[str]()
    for call in calls:
        path, method = method_of(call)
        if method == "zero_grad":
            found.add(path)
        elif method == "step" and path:
            steps.add(path)
            use = file.use(call.func)
            if use is not None and use.api == _STEP:
                found.add(path)
            elif use is None and not call.args:
                unknown.add(path)
    has_schedules = any(api.startswith(_SCHEDULES) for api in file.facts.apis)
    return found if found & steps or has_schedules else found | unknown


def look_at_loop(loop: Repeated, file: FileEdit) -> None:
    """Raise EagerError for a loop or a function of another form."""
    if not isinstance(loop, ast.FunctionDef):
        if loop.orelse or isinstance(file.tree.scope(loop), ast.AsyncFunctionDef):
            raise EagerError(loop, "the loop has an else")
    elif any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(loop)):
        raise EagerError(loop, "the step is in a generator")


def look_at_what_is_made(
    loop: Repeated, paths: Iterable[str], forward: Iterable[ast.stmt], file: FileEdit
) -> None:
    """Raise EagerError where a round makes what the step, which is made before it, is given.

    Also where the forward part binds a network, which would be made in the graph.
    """
    for statement in forward:
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and file.carrying.is_module_call(value):
            if file.api_of_call(value) not in WITHOUT_PARAMETERS:
                name = min(bound_by(statement), default="a network")
                raise EagerError(statement, f"{name} is made anew in each round")
    roots = {path.partition(".")[0] for path in paths}
    for statement in () if isinstance(loop, ast.FunctionDef) else loop.body:
        if made := bound_by(statement) & roots:
            raise EagerError(statement, f"{min(made)} is made anew in each round")


def look_at_shares(zeroed: Iterable[ast.stmt], turn: Turn, loop: Repeated) -> None:
    """Raise EagerError unless the first of several losses alone begins without gradients."""
    losses = (call for call in calls_in([loop]) if method_of(call)[1] == "backward")
    first = min(call.lineno for call in losses if turn.is_of_step(call))
    if late := next((s for s in zeroed if s.lineno > first), None):
        raise EagerError(late, "gradients are zeroed between several losses of one step")

"""`F.cross_entropy(scores, y)` of scores with -inf, whose loss MindSpore (2.10, CPU) makes NaN."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.file import FileEdit
from isograd.convert.infinities import INFINITY, NAN, Infinities, Special
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import first_argument

#: The layer of the first function is the runtime's in any case.
_LAYER = "torch.nn.NLLLoss"
_RUNTIME = {
    "torch.nn.functional.cross_entropy": "composites.cross_entropy",
    "torch.nn.functional.nll_loss": "composites.nll_loss",
    _LAYER: "composites.NLLLoss",
}
LOSSES = frozenset(_RUNTIME)


class InfiniteScores:
    """A loss of classes, some of which are masked out; it keeps torch's arguments."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "pairs without those of an item with itself",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                scores = (x @ y.T).fill_diagonal_(float('-inf'))
                return nn.functional.cross_entropy(scores, torch.arange(2) ^ 1)
            """,
        ),
        Example(
            "a layer of the loss",
            """
            loss = nn.NLLLoss()

            def f(x: torch.Tensor, y: torch.Tensor):
                logs = torch.log_softmax(x.masked_fill(y > x, float('-inf')), dim=1)
                return loss(logs, torch.zeros(2, dtype=torch.int64))
            """,
        ),
        Example(
            "scores of a method that masks",
            """
            def masked(scores, mask):
                return scores.masked_fill(mask, -torch.inf)

            def f(x: torch.Tensor, y: torch.Tensor):
                logs = nn.functional.log_softmax(masked(x, y > x), dim=1)
                return nn.functional.nll_loss(logs, torch.zeros(2, dtype=torch.int64))
            """,
        ),
    )
    counterexamples = (
        Example(
            "infinity before a softmax",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                scores = x.masked_fill(y > x, float('-inf'))
                scores = torch.softmax(scores, dim=1)
                return nn.functional.cross_entropy(scores @ y.T, torch.arange(2))
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the runtime function, which picks the classes of the targets."""
        assert isinstance(node, ast.Call)
        api = file.api_of_call(node)
        if api not in LOSSES:
            return False
        if api == _LAYER:
            given = _given_to_objects(file)
        else:
            given = filter(None, [first_argument(node, "input")])
        if not any(map(infinities_of(file).may, given)):
            return False
        file.replace(node.func, file.name(_RUNTIME[api]))
        file.uses += 1
        file.converted += 1
        return True


def _given_to_objects(file: FileEdit) -> Iterator[ast.expr]:
    """The first of two things that are given to something of the program's, such as a loss."""
    for call in file.tree.of(ast.Call):
        if len(call.args) == 2 and not file.api_of_call(call):
            yield call.args[0]


def infinities_of(file: FileEdit) -> Infinities:
    """What may be infinite in a file."""
    return _followed(file, file.settings.infinite, INFINITY)


def nans_of(file: FileEdit) -> Infinities:
    """What may be NaN in a file."""
    return _followed(file, file.settings.undefined, NAN)


def _followed(file: FileEdit, elsewhere: frozenset[str], special: Special) -> Infinities:
    return Infinities(
        file.tree, lambda at: scope_of(at, file), lambda at: _api(at, file), elsewhere, special
    )


def _api(function: ast.AST, file: FileEdit) -> str:
    use = file.use(function)
    return "" if use is None else use.api

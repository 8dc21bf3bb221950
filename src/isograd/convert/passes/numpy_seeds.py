"""`np.random.seed(0)` before networks are made: MindSpore's layers draw from numpy's generator.

torch's have a generator of their own, so that what numpy draws later differs in the port.
MindSpore's set_seed, which replaces torch.manual_seed, seeds numpy's as well.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.places import place

_SHARED = "layers that are made later draw from numpy's generator: numpy gives other numbers then"
_SHARED_ADVICE = "np.random.RandomState(seed) draws the same numbers in both."
_SEEDED = "ms.set_seed seeds numpy's generator as well: numpy gives other numbers from here on"
_SEEDED_ADVICE = "Seed numpy behind it."
_SEEDS = frozenset(
    f"torch.{name}manual_seed{all_}" for name in ("", "random.", "cuda.") for all_ in ("", "_all")
)
#: What of numpy.random draws nothing from the generator that all share.
_DRAW_NOTHING = frozenset("seed RandomState default_rng get_state set_state".split())
#: Words in the names of layers that begin with random weights.
_WITH_WEIGHTS = (
    "Linear", "Conv", "Embedding", "RNN", "LSTM", "GRU", "Transformer", "Attention",
)  # fmt: skip


class NumpySeeds:
    """`np.random.seed(0)`, then a network, then `np.random.rand(3)`."""

    kinds = (ast.Call, ast.Import, ast.ImportFrom)
    examples = (
        Example(
            "numpy draws behind a layer",
            """
            import numpy as np

            np.random.seed(0)
            layer = nn.Linear(2, 2)
            noise = np.random.rand(3)
            """,
        ),
        Example(
            "numpy draws behind torch's seed",
            """
            import numpy as np

            np.random.seed(0)
            noise = np.random.rand(3)
            torch.manual_seed(0)
            more = np.random.rand(3)
            """,
        ),
    )
    counterexamples = (
        Example(
            "numpy draws before a layer",
            """
            import numpy as np

            np.random.seed(0)
            noise = np.random.rand(3)
            layer = nn.Linear(2, 2)
            """,
        ),
        Example(
            "a generator that nothing shares",
            """
            import numpy as np

            np.random.seed(0)
            layer = nn.Linear(2, 2)
            noise = np.random.RandomState(0).rand(3)
            """,
        ),
        Example(
            "both are seeded alike",
            """
            import numpy as np

            np.random.seed(0)
            torch.manual_seed(0)
            noise = np.random.rand(3)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report a seed whose numbers a network takes some of."""
        if not isinstance(node, ast.Call):
            return False
        if file.api_of_call(node) in _SEEDS and _changes_numpys(node, file):
            file.finding(node, "shared-generator", _SEEDED, _SEEDED_ADVICE, level=Level.LOOK)
        if _function(node, file) != "seed":
            return False
        made = [call for call in file.tree.of(ast.Call) if _draws_weights(call, file)]
        later = [call for call in made if _may_follow(node, call, file)]
        if not later:
            return False
        drawn = [call for call in file.tree.of(ast.Call) if _draws(call, file)]
        if any(_may_follow(call, draw, file) for call in later for draw in drawn):
            file.finding(node, "shared-generator", _SHARED, _SHARED_ADVICE, level=Level.LOOK)
        return False


def _changes_numpys(node: ast.Call, file: FileEdit) -> bool:
    """Whether numpy was seeded before otherwise, or has drawn since, and draws behind torch's seed.

    Without a seed numpy's numbers are no program's.
    """
    own = [call for call in file.tree.of(ast.Call) if _is_beside(call, node, file)]
    seeds = [call for call in own if _function(call, file) == "seed"]
    before = [call for call in seeds if call.lineno < node.lineno]
    if not before or len(before) < len(seeds):
        return False
    last = max(before, key=lambda call: call.lineno)
    draws = [call for call in file.tree.of(ast.Call) if _draws(call, file)]
    between = any(
        last.lineno < call.lineno < node.lineno and _is_beside(call, node, file) for call in draws
    )
    is_alike = list(map(ast.unparse, last.args)) == list(map(ast.unparse, node.args))
    return (between or not is_alike) and any(_may_follow(node, call, file) for call in draws)


def _is_beside(call: ast.Call, other: ast.Call, file: FileEdit) -> bool:
    """Whether both stand in the same function, or outside of all."""
    return file.tree.function(call) is file.tree.function(other)


def _function(node: ast.Call, file: FileEdit) -> str:
    """The name of the function of `numpy.random` that a call calls; empty for anything else."""
    called = node.func
    if not isinstance(called, ast.Attribute):
        return ""
    owner = called.value
    if isinstance(owner, ast.Attribute) and owner.attr == "random":
        return called.attr if getattr(owner.value, "id", "") in _names("numpy", file) else ""
    return called.attr if getattr(owner, "id", "") in _names("numpy.random", file) else ""


def _names(module: str, file: FileEdit) -> set[str]:
    """What a module of numpy's is called in the file."""
    package, _, name = module.rpartition(".")
    found = {
        part.asname or part.name
        for node in file.tree.of(ast.Import)
        for part in node.names
        if part.name == module
    }
    return found | {
        part.asname or part.name
        for node in file.tree.of(ast.ImportFrom)
        for part in node.names
        if node.module == package and part.name == name
    }


def _draws(node: ast.Call, file: FileEdit) -> bool:
    function = _function(node, file)
    return function[:1].islower() and function not in _DRAW_NOTHING


def _draws_weights(node: ast.Call, file: FileEdit) -> bool:
    """Whether a call makes a network of the project's, or a layer of torch's with weights."""
    if place(node) in file.facts.built:
        return True
    api = file.api_of_call(node)
    is_layer = file.names.kind(api) == "M"
    return is_layer and any(word in api for word in _WITH_WEIGHTS)


def _may_follow(first: ast.Call, second: ast.Call, file: FileEdit) -> bool:
    """Whether a call may run behind another: functions run at any time."""
    return not _is_beside(first, second, file) or second.lineno > first.lineno

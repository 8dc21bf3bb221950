"""`output = model(images)` of an evaluation: compiled like the steps that train the network."""

from __future__ import annotations

import ast

from isograd.convert.analysis.layers import is_path
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.training.names import UNRECORDED

_EVAL = "torch.nn.Module.eval"
_TRAINED = """
            net = nn.Linear(2, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            batches = [torch.ones(4, 2), torch.zeros(4, 2)]
            for x in batches:
                optimizer.zero_grad()
                loss = net(x).sum()
                loss.backward()
                optimizer.step()
"""


class CompiledEvaluations:
    """The call of a network, set to inference in the same function, for each batch of a loop.

    The runtime compiles it where a compiled step trains the same object.
    """

    kinds = (ast.Call,)
    examples = (
        Example(
            "in a function",
            f"""
            def evaluate(model: nn.Module, batches):
                model.eval()
                total = 0.0
                with torch.no_grad():
                    for x in batches:
                        total += model(x).sum().item()
                return total

{_TRAINED}
            evaluate(net, batches)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a single batch",
            f"""
            @torch.no_grad()
            def predict(model: nn.Module, x: torch.Tensor):
                model.eval()
                return model(x)

{_TRAINED}
            """,
        ),
        Example(
            "whose mode is not said in the function",
            f"""
            @torch.no_grad()
            def outputs(model: nn.Module, batches):
                found = []
                for x in batches:
                    found.append(model(x).sum().item())
                return found

{_TRAINED}
            """,
        ),
        Example(
            "nothing is trained",
            """
            @torch.no_grad()
            def evaluate(model: nn.Module, batches):
                model.eval()
                return [model(x).sum().item() for x in batches]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Ask the runtime for what calls the network."""
        assert isinstance(node, ast.Call)
        if not file.settings.compiles_evaluation or not is_path(node.func):
            return False
        if not node.args or node.keywords or not _is_for_each_batch(node, file):
            return False
        if _is_unrecorded(node, file) and _is_evaluated(node.func, file):
            name = file.name("composites.evaluated")
            file.replace(node.func, f"{name}({file.source(node.func)})")
        return False


def _is_for_each_batch(node: ast.Call, file: FileEdit) -> bool:
    """Whether a loop is around a call, in its function."""
    function = file.tree.function(node)
    loops = (part for part in file.tree.above(node) if isinstance(part, ast.For))
    return any(file.tree.function(part) is function for part in loops)


def _is_unrecorded(node: ast.Call, file: FileEdit) -> bool:
    """Whether a call stands where torch records nothing: in a block, or a decorated function."""
    function = file.tree.function(node)
    switches = [
        item.context_expr
        for part in file.tree.above(node)
        if isinstance(part, ast.With) and file.tree.function(part) is function
        for item in part.items
    ]
    switches += getattr(function, "decorator_list", [])
    return any(
        file.named.get(one.func if isinstance(one, ast.Call) else one, "") in UNRECORDED
        for one in switches
    )


def _is_evaluated(network: ast.expr, file: FileEdit) -> bool:
    """Whether the function says `network.eval()` of the same path."""
    path, function = ast.unparse(network), file.tree.function(network)
    for call in file.tree.of(ast.Call):
        use = file.use(call.func)
        if use is not None and use.api == _EVAL and isinstance(call.func, ast.Attribute):
            is_here = file.tree.function(call) is function
            if is_here and ast.unparse(call.func.value) == path:
                return True
    return False

"""`@torch.no_grad()` on functions that a static graph runs: their results have no gradient."""

from __future__ import annotations

import ast

from isograd.convert.analysis.fresh_values import returns_new_values
from isograd.convert.file import FileEdit
from isograd.convert.passes.decorators import leave_out
from isograd.convert.passes.example import Example
from isograd.convert.passes.reach_of_writes import is_in_forward
from isograd.convert.training.names import UNRECORDED

_STEP = """
            net = nn.Linear(2, 2)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for x in [torch.ones(4, 2), torch.zeros(4, 2)]:
                out = net(x)
                loss = (out * share(out)).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""


class UnrecordedResults:
    """What such a function returns, as far as it computes all of it."""

    kinds = (ast.Return,)
    examples = (
        Example(
            "weights of a loss",
            f"""
            @torch.no_grad()
            def share(x: torch.Tensor):
                y = torch.softmax(x, 1)
                return y.max(1, keepdim=True).values
            {_STEP}
            """,
        ),
        Example(
            "a method of a network",
            """
            class Net(nn.Module):
                @torch.no_grad()
                def scale(self, x):
                    return torch.exp(x), x * 2

                def forward(self, x):
                    y, z = self.scale(x)
                    return x * y + z
            """,
        ),
    )
    counterexamples = (
        Example(
            "what no graph runs",
            """
            @torch.no_grad()
            def share(x: torch.Tensor):
                return torch.softmax(x, 1)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Stop the gradient of what is returned."""
        assert isinstance(node, ast.Return)
        function = file.tree.function(node)
        if not isinstance(function, ast.FunctionDef) or node.value is None:
            return False
        switch = switch_of(function, file)
        if switch is None or not _is_run_by_graph(function, file):
            return False
        if not returns_new_values(function, file):
            return False
        leave_out(switch, file)
        value = file.source(node.value)
        value = f"({value})" if isinstance(node.value, ast.Tuple) and value[:1] != "(" else value
        file.replace(node, f"return {file.name('composites.without_gradient')}({value})")
        return False


def switch_of(function: ast.FunctionDef, file: FileEdit) -> ast.expr | None:
    """The only decorator of a function, if it is `no_grad` or `inference_mode` as they are."""
    for switch in function.decorator_list:
        is_plain = not isinstance(switch, ast.Call) or not (switch.args or switch.keywords)
        named = switch.func if isinstance(switch, ast.Call) else switch
        if is_plain and file.named.get(named, "") in UNRECORDED:
            return switch if len(function.decorator_list) == 1 else None
    return None


def _is_run_by_graph(function: ast.FunctionDef, file: FileEdit) -> bool:
    return function.name in file.settings.computed or is_in_forward(function.body[0], file)


def keeps_gradients(function: ast.AST, file: FileEdit | None) -> bool:
    """Whether a graph would give gradients to what a function returns that records none."""
    if not isinstance(function, ast.FunctionDef) or file is None:
        return False
    named = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    if not any(file.named.get(one, "") in UNRECORDED for one in named):
        return False
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
    is_stopped = switch_of(function, file) is not None and returns_new_values(function, file)
    return bool(returns) and not is_stopped

"""`dict(loss=x)` in a class's methods, which the static graph runs outside, is `{'loss': x}`."""

from __future__ import annotations

import ast

from isograd.convert.analysis.methods import is_dict_of_keywords, is_in_method
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class DictCalls:
    """A dictionary that is made by keywords alone, where a pass may be compiled."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "what a network returns",
            """
            class Net(nn.Module):
                def forward(self, x, y):
                    loss = torch.relu(x - y).sum()
                    return dict(loss=loss, difference=x - y)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a dictionary of pairs",
            """
            class Net(nn.Module):
                def forward(self, x, names):
                    return dict(zip(names, x))
            """,
        ),
        Example(
            "a function of the script",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return dict(x=x, y=y)
            """,
        ),
        Example(
            "a dict of the file's own",
            """
            def dict(**named):
                return list(named.values())

            class Net(nn.Module):
                def forward(self, x):
                    return dict(x=x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the dictionary with its keys as texts."""
        assert isinstance(node, ast.Call)
        if not is_dict_of_keywords(node) or "dict" in file.tree.own_names:
            return False
        if not is_in_method(file.tree.above(node)):
            return False
        items = [f"'{keyword.arg}': {file.source(keyword.value)}" for keyword in node.keywords]
        file.replace(node, "{" + ", ".join(items) + "}")
        return True

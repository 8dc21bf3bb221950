"""`x.__iadd__(1)`, `operator.iadd(x, 1)` of what may be a tensor, which changes in place."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.scan.names_in_place import SPECIAL

_MAY_BE = "if {0} is a tensor it changes in place, for all who hold it; the port changes none"
_ADVICE = "Write it as a statement of its own: {0} += …"


class OperatorsInPlace:
    """An operator that is called by its name, where nothing shows what it changes.

    Of a known tensor it is the method that does the same.
    """

    kinds = (ast.Call,)
    examples = (
        Example(
            "what may be a tensor",
            """
            def f(x, y: torch.Tensor):
                x.__iadd__(torch.exp(y))
            """,
        ),
        Example(
            "a function of Python's",
            """
            import operator

            def f(x, y: torch.Tensor):
                return operator.imul(x, torch.exp(y))
            """,
        ),
    )
    counterexamples = (
        Example(
            "a list",
            """
            import operator

            def f(y: torch.Tensor):
                found = [y]
                operator.iadd(found, [y])
                found.__iadd__([y])
                return found
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report what nothing shows to be a tensor, or not to be one."""
        assert isinstance(node, ast.Call)
        if not file.imported.torch:
            return False
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in SPECIAL:
            of, is_open = function.value, place(function) in file.facts.unknown
        elif node.args:
            of, is_open = node.args[0], file.facts.operators.get(place(function)) == ""
        else:
            return False
        if is_open and getattr(getattr(of, "func", None), "id", "") != "super":
            shown = ast.unparse(of)
            message, advice = _MAY_BE.format(shown), _ADVICE.format(shown)
            file.finding(node, "in-place-operator", message, advice, level=Level.LOOK)
        return False

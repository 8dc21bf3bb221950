"""`getattr(x, "std")()`: a method of a tensor that is asked for by its name."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.knowledge.rewrite import NotRewritten
from isograd.scan.values import Tensor

_COMPUTED = "which method of a tensor getattr finds is not written out; MindSpore's may differ"
_LITERAL = "{0} of a tensor is found by getattr, and has no counterpart in MindSpore that fits"
_ADVICE = "Write the method itself, x.name(…), and convert it again."


class MembersByName:
    """A method of a known tensor that `getattr` finds and the program calls at once."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a name that is written out",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return getattr(x, "std")(0)
            """,
        ),
        Example(
            "a name that is computed",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return [getattr(x, name)(0) for name in ("sum", "cumsum")]
            """,
        ),
    )
    counterexamples = (
        Example(
            "an attribute of the program's own",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x * (1 if getattr(x, "skipped", False) else 2)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the method by its entry; a name that is computed becomes a finding."""
        assert isinstance(node, ast.Call)
        asked = node.func
        if not isinstance(asked, ast.Call) or len(asked.args) < 2:
            return False
        if not isinstance(file.facts.owners.get(place(asked)), Tensor):
            return False
        name = getattr(asked.args[1], "value", None)
        if not isinstance(asked.args[1], ast.Constant):
            file.finding(node, "not-converted", _COMPUTED, _ADVICE)
        elif file.names.tensor.get(str(name)) == "m":
            return _write(node, asked, str(name), file)
        return False


def _write(node: ast.Call, asked: ast.Call, name: str, file: FileEdit) -> bool:
    api = f"torch.Tensor.{name}"
    file.uses += 1
    entry = file.entry(api)
    call = file.call(node, file.argument(asked.args[0]))
    if entry is None or isinstance(call, NotRewritten) or name.endswith("_"):
        file.finding(node, "not-converted", _LITERAL.format(name), _ADVICE, api=api)
        return False
    result = file.rewritten(entry, call)
    if isinstance(result, NotRewritten):
        file.finding(node, "not-converted", result.reason, _ADVICE, api=api)
        return False
    layout.write_call(file, node, result.code)
    file.converted += 1
    return True

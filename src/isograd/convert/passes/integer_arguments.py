"""Functions that take integers and booleans in torch, and raise of them in MindSpore 2.10."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.integer_expressions import may_be_integer
from isograd.convert.passes.example import Example
from isograd.convert.passes.known_dtypes import known_dtype
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.tree import first_argument

#: Functions of real numbers: of whole ones torch computes in float32.
_REAL = frozenset(
    """exp expm1 log log2 log10 log1p rsqrt reciprocal sin cos tan sinh cosh tanh asin acos atan
    arcsin arccos arctan asinh acosh atanh arcsinh arccosh arctanh sigmoid erf erfc erfinv lgamma
    digamma logit deg2rad rad2deg i0 logsumexp""".split()
)
#: Of which two numbers, or tensors of real ones, are the ends.
_SPACES = frozenset(("linspace", "logspace"))
_JOINING = frozenset(
    f"torch.{name}"
    for name in "cat concat concatenate stack hstack vstack dstack column_stack row_stack".split()
)
_CONCATENATING = frozenset(("torch.cat", "torch.concat", "torch.concatenate"))


class RealFunctions:
    """`torch.log(torch.tensor(10000))`: the function itself is for other passes."""

    kinds = (ast.Call,)
    after = ("TruncatedLogarithms",)
    examples = (
        Example("a logarithm of an integer", "value = torch.log(torch.tensor(10000))"),
        Example("an end that is an integer", "rows = torch.linspace(0, torch.tensor(3), 4)"),
    )
    counterexamples = (
        Example("a logarithm of a fraction", "value = torch.log(torch.tensor(0.5))"),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what it is given in float32 if it is whole."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        name = "" if use is None else use.api.rpartition(".")[2]
        if use is not None and name in _REAL:
            given = [first_argument(node, "input")]
            if use.is_member:
                assert isinstance(node.func, ast.Attribute)
                given = [node.func.value]
        else:
            given = _ends(node) if name in _SPACES else []
        for part in given:
            if part is not None and may_be_integer(part, file):
                file.replace(part, f"{file.name('composites.floating')}({file.source(part)})")
        return False


def _ends(node: ast.Call) -> list[ast.expr | None]:
    """The first and the last number of a row."""
    named = [part.value for part in node.keywords if part.arg in ("start", "end")]
    return [*node.args[:2], *named]


class JoinedParts:
    """`torch.cat([x, torch.tensor([1])])`: the function itself is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "integers beside fractions",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.cat([x, torch.tensor([1])])
            """,
        ),
    )
    counterexamples = (
        Example(
            "two tensors of which nothing is known",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.cat([x, y])
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the parts in one dtype where some are whole and the others are not known to be."""
        assert isinstance(node, ast.Call)
        if file.api_of_call(node) not in _JOINING:
            return False
        parts = first_argument(node, "tensors")
        if parts is None:
            return False
        given: list[ast.expr] = getattr(parts, "elts", [parts])
        if file.api_of_call(node) in _CONCATENATING and any(
            _may_be_empty(part, file) for part in given
        ):
            file.replace(parts, f"{file.name('composites.without_empty')}({file.source(parts)})")
        elif len({may_be_integer(part, file) for part in given}) == 2 or _may_differ(given, file):
            file.replace(parts, f"{file.name('composites.of_one_dtype')}({file.source(parts)})")
        return False


def _may_differ(given: list[ast.expr], file: FileEdit) -> bool:
    """Whether parts are known to be of several dtypes, or of one beside what a caller passes."""
    known = {known_dtype(part, part, file) for part in given} - {""}
    is_open = any(_is_passed(part, file) for part in given)
    return len(known) > 1 or (bool(known) and is_open)


def _is_passed(part: ast.expr, file: FileEdit) -> bool:
    """Whether a part is a parameter of the function, as it was passed."""
    if not isinstance(part, ast.Name):
        return False
    scope = scope_of(part, file)
    return part.id in scope.parameters and not scope.statements_of(part.id, part)


def _may_be_empty(part: ast.expr, file: FileEdit) -> bool:
    """Whether a part may be `torch.empty(0)`, by which a loop begins to collect.

    What something holds, or a function is given, may be one where the file makes any.
    """
    if not file.empty_tensors:
        return False
    if isinstance(part, ast.Name):
        values = scope_of(part, file).values_of(part.id)
        return not values or not file.empty_tensors.isdisjoint(values)
    if isinstance(part, ast.Attribute):
        place = ast.dump(part.value), part.attr
        return any(
            node.value in file.empty_tensors
            for node in file.tree.of(ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Attribute) and (ast.dump(target.value), target.attr) == place
        )
    return isinstance(part, (ast.Subscript, ast.Starred)) or part in file.empty_tensors

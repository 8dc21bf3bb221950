"""Masks of what learns that are computed with more than once, where gradients are recorded.

As it runs MindSpore 2.10 refuses to add two gradients of booleans ("For primitive[Add] … but got
Tensor[Bool]"), and the gradient of an element of a mask; torch's masks have none.
"""

from __future__ import annotations

import ast

from isograd.convert.analysis.mask_uses import SEVERAL, MaskUses
from isograd.convert.file import FileEdit
from isograd.convert.integer_expressions import POSITIONS
from isograd.convert.passes.elements import is_without_gradient
from isograd.convert.passes.example import Example
from isograd.convert.passes.known_dtypes import known_dtype
from isograd.convert.passes.numpy_arrays import is_array
from isograd.convert.passes.reach_of_writes import all_values_of, scope_of

_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_CONDITIONS = frozenset(
    """eq ne lt le gt ge less less_equal greater greater_equal not_equal isnan isinf isfinite
    isclose isin logical_and logical_or logical_not logical_xor""".split()
)
#: MindSpore's own has no gradient at all as it runs.
_WITHOUT_GRADIENT = frozenset(("torch.logical_xor", "torch.Tensor.logical_xor"))
#: What no gradient comes back from.
_CONSTANT = POSITIONS | frozenset(
    """arange zeros ones rand randn zeros_like ones_like rand_like randn_like empty eye detach
    data long int short byte item tolist size shape len ndim numel dim tensor range
    from_numpy""".split()
)
_MASKS = (ast.Compare, ast.UnaryOp, ast.BinOp, ast.Call)
_DEPTH = 4


class BooleanGradients:
    """A comparison, where several gradients may come back to it."""

    kinds = (
        *(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Call, ast.Subscript, ast.BinOp),
        *(ast.Attribute, ast.IfExp, ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp),
    )
    examples = (
        Example(
            "a mask that is multiplied and counted",
            """
            def f(x: torch.Tensor):
                keep = x <= 0.5
                return (x * keep).sum() / keep.sum()
            """,
        ),
        Example(
            "a function that does so",
            """
            def masked_mean(x, mask):
                return (x * mask).sum() / mask.sum()

            def f(x: torch.Tensor, y: torch.Tensor):
                return masked_mean(x, ~(y > 0))
            """,
        ),
        Example(
            "rows of a mask",
            """
            def f(x: torch.Tensor):
                keep = x > 0
                return x[0] * keep[0]
            """,
        ),
    )
    counterexamples = (
        Example(
            "a mask that is multiplied once",
            """
            def f(x: torch.Tensor):
                keep = x <= 0.5
                return (x * keep).sum() / keep.any()
            """,
        ),
        Example(
            "a mask that is cast first",
            """
            def f(x: torch.Tensor):
                keep = (x <= 0.5).float()
                return (x * keep).sum() / keep.sum()
            """,
        ),
        Example(
            "what does not learn",
            """
            def f(x: torch.Tensor):
                keep = torch.arange(x.shape[0]) < 3
                return (x * keep).sum() / keep.sum()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Stop the gradient behind the comparison; of what is no tensor that is itself."""
        is_compiled = file.settings.compiles_steps and not file.settings.records_gradients
        if is_compiled or not file.imported.torch:
            return False  # a graph adds them
        for value in file.tree.children.get(node, ()):
            inner = value.value if isinstance(value, ast.keyword) else value
            if not isinstance(inner, _MASKS) or is_without_gradient(inner, file):
                continue
            if _needs_stop(inner, file):
                file.replace(inner, f"{file.name('ops.stop_gradient')}({file.argument(inner)})")
        return False


def _needs_stop(node: ast.expr, file: FileEdit) -> bool:
    uses = uses_of_masks(file)
    if not is_boolean(node, file, uses) or not _may_learn(node, file):
        return False
    use = file.use(node.func) if isinstance(node, ast.Call) else None
    is_refused = use is not None and use.api in _WITHOUT_GRADIENT
    return uses.count(node) >= (1 if is_refused else SEVERAL)


def uses_of_masks(file: FileEdit) -> MaskUses:
    return MaskUses(file.tree, lambda node: getattr(file.use(node), "api", ""))


def is_boolean(node: ast.expr, file: FileEdit, uses: MaskUses, depth: int = _DEPTH) -> bool:
    """Whether an expression is a mask by how it, or what its name holds, is written."""
    if depth == 0:
        return False
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        is_of_text = any(isinstance(getattr(side, "value", 0), (str, bytes)) for side in sides)
        return len(node.ops) == 1 and isinstance(node.ops[0], _COMPARED) and not is_of_text
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert) and is_boolean(node.operand, file, uses, depth - 1)
    if isinstance(node, ast.BinOp):
        is_bitwise = isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor))
        both = (node.left, node.right)
        return is_bitwise and any(is_boolean(one, file, uses, depth - 1) for one in both)
    if isinstance(node, ast.Name):
        values = scope_of(node, file).values_of(node.id)
        return any(is_boolean(value, file, uses, depth - 1) for value in values)
    if not isinstance(node, ast.Call):
        return False
    use = file.use(node.func)
    if use is not None:
        home, _, name = use.api.rpartition(".")
        return home in ("torch", "torch.Tensor") and name in (*_CONDITIONS, "bool")
    function = uses.function_of(node)
    if function is None:
        return isinstance(node.func, ast.Attribute) and node.func.attr in _CONDITIONS
    return any(is_boolean(value, file, uses, depth - 1) for value in uses.returned(function))


def _may_learn(node: ast.expr, file: FileEdit, depth: int = _DEPTH) -> bool:
    """Whether a gradient may come back to an expression, or to something in it."""
    if depth == 0 or known_dtype(node, node, file) in ("int64", "int32", "uint8", "int16"):
        return depth == 0
    if isinstance(node, ast.Constant) or is_array(node, file):
        return False
    if isinstance(node, ast.Name):
        values = all_values_of(node, file)
        return not values or any(_may_learn(value, file, depth - 1) for value in values)
    if isinstance(node, ast.Compare):
        return any(_may_learn(part, file, depth) for part in (node.left, *node.comparators))
    if isinstance(node, ast.BinOp):
        return any(_may_learn(part, file, depth) for part in (node.left, node.right))
    if isinstance(node, ast.UnaryOp):
        return _may_learn(node.operand, file, depth)
    if isinstance(node, ast.Subscript):
        return _may_learn(node.value, file, depth)
    named = node.func if isinstance(node, ast.Call) else node
    name = getattr(named, "attr", getattr(named, "id", ""))
    if name in _CONSTANT:
        return any(part.arg == "requires_grad" for part in getattr(node, "keywords", ()))
    if isinstance(node, ast.Call):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        use = file.use(node.func)
        if use is not None and not use.is_member:
            inner = []
        if use is None or not (inner or node.args):
            return True
        return any(_may_learn(part, file, depth - 1) for part in (*inner, *node.args))
    return True

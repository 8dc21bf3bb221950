"""Reductions and losses of what a mask has selected, which may be nothing."""

from __future__ import annotations

import ast
import dataclasses

from isograd.convert import layout
from isograd.convert.analysis.emptiness import REDUCTIONS, is_loss
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place
from isograd.convert.use import Use
from isograd.knowledge.rewrite import NotRewritten

#: Of an empty tensor MindSpore's own sum is whatever stood in the memory (2.10, CPU).
_TEMPLATE = "composites.total({0}{{, dim=dim}}{{, keepdim=keepdim}}{{, dtype=dtype}})"
_NAN = 'float("nan")'
#: What torch's reductions of no element are, where MindSpore's are undefined.
_OF_NOTHING = {
    **dict.fromkeys("nansum norm vector_norm matrix_norm count_nonzero dot dist".split(), "0"),
    **dict.fromkeys("mean nanmean median nanmedian".split(), _NAN),
    "any": "False",
    "all": "True",
    "prod": "1",
}
#: Products, where they or their gradients are sums over an axis that may be empty.
_PRODUCTS = frozenset("matmul mm bmm linear".split())
_LAYERS = frozenset(f"torch.nn.{name}" for name in ("Linear", "Bilinear", "Sequential"))
_FUNCTIONAL = "torch.nn.functional."
_TENSOR = "torch.Tensor."


class ReductionsOfSelections:
    """`loss[mask].sum()`, `F.cross_entropy(logits[mask], labels[mask])`."""

    kinds = (ast.Call, ast.BinOp)
    examples = (
        Example(
            "the sum of what a mask takes",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[y > 0].sum()
            """,
        ),
        Example(
            "the mean and a loss of it, by other names",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                chosen = x[y > 0]
                return chosen.abs().mean() + F.l1_loss(chosen, y[y > 0], reduction="sum")
            """,
        ),
    )
    counterexamples = (
        Example(
            "the sum of a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x.sum()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what has torch's value of nothing."""
        if isinstance(node, ast.BinOp):
            return _product(node, file)
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None:
            return _layer(node, file)
        name = use.api.rpartition(".")[2]
        if not use.is_sure or not _may_be_empty(node, use, name, file):
            return False
        if name == "sum":
            return _write(
                node, use, _TEMPLATE.format("{self}" if use.is_member else "{input}"), file
            )
        value = _OF_NOTHING.get(name, "")
        if use.api.startswith(_FUNCTIONAL) and is_loss(name):
            value = _of_loss(node, file)
        elif name in _PRODUCTS:
            value = "0"
        return bool(value) and _write(node, use, "", file, value)


def _may_be_empty(node: ast.Call, use: Use, name: str, file: FileEdit) -> bool:
    given = [*node.args, *(part.value for part in node.keywords)]
    if name in _PRODUCTS:
        both = [node.func.value] if isinstance(node.func, ast.Attribute) and use.is_member else []
        return any(map(file.emptiness.may, [*both, *given][:2]))
    if use.api.startswith(_FUNCTIONAL):
        return is_loss(name) and any(map(file.emptiness.may, given))
    if name not in REDUCTIONS:
        return False
    if place(node) in file.facts.selected:
        return True
    if use.is_member and use.api.startswith(_TENSOR):
        assert isinstance(node.func, ast.Attribute)
        return file.emptiness.may(node.func.value)
    return any(map(file.emptiness.may, given[:1]))


def _of_loss(node: ast.Call, file: FileEdit) -> str:
    """What a loss is of nothing, by how it reduces; empty where it does not."""
    given = {part.arg: part.value for part in node.keywords}
    reduction = given.get("reduction")
    if reduction is None:
        averages = getattr(given.get("size_average"), "value", True)
        return "0" if averages is False else _NAN
    if not isinstance(reduction, ast.Constant):
        return f"{file.name('composites.of_nothing')}({file.source(reduction)})"
    return {"none": "", "sum": "0"}.get(str(reduction.value), _NAN)


def _write(node: ast.Call, use: Use, template: str, file: FileEdit, value: str = "") -> bool:
    receiver = ""
    if use.is_member:
        assert isinstance(node.func, ast.Attribute)
        receiver = file.argument(node.func.value)
    entry, call = file.entry(use.api), file.call(node, receiver)
    if entry is None or isinstance(call, NotRewritten):
        return False
    if template:
        entry = dataclasses.replace(entry, rewrite=template, others=())
    result = file.rewritten(entry, call)
    if isinstance(result, NotRewritten):
        return False
    code = _guarded(result.code, value, file) if value else result.code
    if not code:
        return False
    layout.write(file, node, code)
    file.uses += 1
    file.converted += 1
    return True


def _guarded(code: str, value: str, file: FileEdit) -> str:
    """A function's call, unless what it is given first has no element; empty for other code."""
    made = layout.parsed(code)
    if not isinstance(made, ast.Call) or not made.args:
        return ""
    function = made.func
    while isinstance(function, ast.Attribute):
        function = function.value
    name, rest = code.split("(", 1)
    if not isinstance(function, ast.Name) or not name.isascii():
        return ""
    return f"{file.name('composites.unless_empty')}({name}, {value}, {rest}"


def _layer(node: ast.Call, file: FileEdit) -> bool:
    """`self.criterion(logits[mask], labels[mask])`, `self.head(x[mask])`."""
    if node.keywords or not any(map(file.emptiness.may, node.args)):
        return False
    held = file.layers_held(node.func)
    if not held:
        return False
    given = ", ".join(file.source(part) for part in node.args)
    layer = file.source(node.func)
    if held <= _LAYERS:
        code = f"{file.name('composites.unless_empty')}({layer}, 0, {given})"
    elif all(api.endswith("Loss") and "CTC" not in api for api in held):
        code = f"{file.name('composites.loss_of')}({layer}, {given})"
    else:
        return False
    layout.write(file, node, code)
    return True


def _product(node: ast.BinOp, file: FileEdit) -> bool:
    """`a.T @ a`, whose inner axis may be empty, and `a @ w`, where that of w's gradient may."""
    if not isinstance(node.op, ast.MatMult):
        return False
    if not (file.emptiness.may(node.left) or file.emptiness.may(node.right)):
        return False
    given = f"{file.source(node.left)}, {file.source(node.right)}"
    written = f"{file.name('composites.unless_empty')}({file.name('ops.matmul')}, 0, {given})"
    layout.write(file, node, written)
    return True

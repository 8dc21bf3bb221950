"""Which names of a function hold tensors, by the calls of torch that bind them."""

from __future__ import annotations

import ast

from isograd.static_graph.scope import FileScope

#: Functions and methods of torch's that make no tensor.
_OTHERS = frozenset(
    "size dim ndimension numel stride item tolist numpy type is_tensor finfo iinfo".split()
)
#: Methods that only a tensor has, of those that a function's inputs may be, and that make one.
_METHODS = frozenset(
    """abs acos add amax amin argmax argmin asin atan bool clamp clone contiguous cos cosh cumsum
    detach div double erf exp expand expm1 flatten float floor half int log log1p long matmul mean
    mm mul neg new_ones new_zeros norm permute pow prod reciprocal relu reshape round rsqrt sigmoid
    sign sin sinh softmax sqrt square squeeze std sub sum tan tanh transpose tril triu unsqueeze var
    view""".split()
)
#: Those that mostly make several.
_SEVERAL = frozenset(
    """max min aminmax topk sort median mode kthvalue chunk split unbind tensor_split meshgrid
    broadcast_tensors unique unique_consecutive svd qr eigh slogdet""".split()
)


def tensors_of(function: ast.FunctionDef, tree: ast.Module) -> frozenset[str]:
    """The names that one plain assignment of a function's body binds, and to a tensor."""
    file, found = FileScope(tree), set[str]()
    stored = [
        part.id
        for part in ast.walk(function)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    ]
    for statement in function.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        value = statement.value
        makes = _makes_several(value) if isinstance(target, ast.Tuple) else False
        if not makes and not _is_tensor(value, file, found):
            continue
        found |= {
            name.id for name in names if isinstance(name, ast.Name) and stored.count(name.id) == 1
        }
    return frozenset(found)


def _is_tensor(node: ast.expr, file: FileScope, known: set[str]) -> bool:
    """Whether an expression makes a tensor, or several."""
    if isinstance(node, ast.BinOp):
        return _is_tensor(node.left, file, known) or _is_tensor(node.right, file, known)
    if isinstance(node, ast.Compare):
        return any(_is_tensor(part, file, known) for part in (node.left, *node.comparators))
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _is_tensor(node.operand, file, known)
    if isinstance(node, ast.Call):
        name = file.qualified(node.func)
        if name.startswith("torch."):
            return name.rpartition(".")[2] not in _OTHERS | _SEVERAL
        return isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
    return isinstance(node, ast.Name) and node.id in known


def _makes_several(node: ast.expr) -> bool:
    """Whether a call makes several tensors, by the name of a function or method of torch's."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _SEVERAL

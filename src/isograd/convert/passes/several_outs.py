"""`out=(values, indices)`: the results of one call in tensors that are there already."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.origins import Reach
from isograd.convert.passes.reach_of_writes import scope_of, sight_of, tell

#: Functions of torch that always give several tensors.
_SEVERAL = frozenset(
    (
        *(f"torch.{name}" for name in "sort topk kthvalue median nanmedian mode cummax".split()),
        *(f"torch.{name}" for name in "cummin aminmax slogdet qr svd geqrf frexp lu".split()),
        *(f"torch.linalg.{name}" for name in "slogdet qr svd eig eigh lstsq lu inv_ex".split()),
    )
)


def is_several(target: ast.expr, node: ast.Call, file: FileEdit) -> bool:
    """Whether `out=` is given a tuple or a list of tensors, written out or by a name."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return True
    if not isinstance(target, ast.Name):
        return False
    is_listed = scope_of(node, file).is_container(target.id)
    has_axis = len(node.args) > 1 or any(part.arg == "dim" for part in node.keywords)
    return is_listed or (has_axis and file.api_of_call(node) in _SEVERAL)


def write_several(target: ast.expr, node: ast.Call, code: str, file: FileEdit) -> None:
    """Bind the results to the names of `out=`, or write them where others see the tensors."""
    names = [part for part in getattr(target, "elts", ()) if isinstance(part, ast.Name)]
    seen = [(part, sight_of(part.id, node, file)) for part in names]
    for part, sight in seen:
        if sight.reach is Reach.LOST:
            tell(sight, part.id, node, file)
    parent = file.tree.parents[node]
    is_named = bool(names) and len(names) == len(getattr(target, "elts", ()))
    is_alone = is_named and all(sight.reach in (Reach.ALONE, Reach.LOST) for _, sight in seen)
    bound = f"{', '.join(part.id for part in names)} = {code}"
    if is_alone and file.tree.is_statement(node):
        layout.write_statement(file, node, bound)
    elif is_alone and isinstance(parent, ast.Assign) and parent.value is node:
        file.replace(node, bound)
    else:
        held = file.source(target)
        layout.write(file, node, f"{file.name('composites.overwrite_all')}({held}, {code})")

"""Numbers of numpy's that may meet tensors: `np.sqrt(2) * x`.

It is a tensor in torch.  In MindSpore 2.10 numpy takes the tensor for an array, so that the result
is one, without a gradient.  As a position in a tensor, torch takes it for Python's number and
MindSpore refuses it.
"""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.tree import imported_from

#: What makes arrays that are put into tensors, or does no arithmetic.
_NO_NUMBERS = frozenset(
    """array asarray asanyarray ascontiguousarray copy empty empty_like zeros zeros_like ones_like
    full_like stack concatenate vstack hstack transpose moveaxis expand_dims squeeze tile repeat
    reshape flip fliplr flipud pad sort isin save savez
    savez_compressed load loadtxt savetxt fromfile frombuffer seed shuffle get_state
    set_state set_printoptions errstate dtype can_cast issubdtype""".split()
)
#: Packages whose functions return numpy's numbers and positions.
_MAKERS = ("numpy", "scipy", "sklearn")


def meeting_numpy(file: FileEdit) -> str:
    """The statement by which numpy gives way to tensors; empty where no number of its is made."""
    names = imported_from(file.tree, _MAKERS)
    if names and any(_makes_number(call.func, names) for call in file.tree.of(ast.Call)):
        return f"{file.name('composites.numpy_gives_way')}()"
    return ""


def _makes_number(called: ast.expr, names: frozenset[str]) -> bool:
    """Whether what is called is numpy's, by what is imported of it, and may return a number."""
    root: ast.expr = called
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in names:
        return False
    return getattr(called, "attr", root.id) not in _NO_NUMBERS

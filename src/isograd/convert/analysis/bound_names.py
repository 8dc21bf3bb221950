"""What binds the names of a function, read once for all who ask."""

from __future__ import annotations

import ast

from isograd.convert.tree import BoundNames, Tree


def bound_names(scope: ast.AST, tree: Tree) -> BoundNames:
    """What binds the names of a function or of the module, inner functions included."""
    found = tree.bound_in.get(scope)
    if found is None:
        found = tree.bound_in[scope] = _read(tree.walked(scope))
    return found


def is_sizes(node: ast.expr) -> bool:
    """`x.shape`, `x.shape[1:]` or `x.size()`: a tuple of integers."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and is_sizes(node.value)
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", "") == "size" and not (node.args or node.keywords)
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _read(nodes: list[ast.AST]) -> BoundNames:
    found = BoundNames()
    for part in nodes:
        if isinstance(part, ast.Assign):
            takes_sizes = is_sizes(part.value)
            for target in part.targets:
                if isinstance(target, ast.Name):
                    found.values.setdefault(target.id, []).append(part.value)
                elif takes_sizes and isinstance(target, (ast.Tuple, ast.List)):
                    found.sizes.update(one.id for one in target.elts if isinstance(one, ast.Name))
        elif isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Load):
                found.stores[part.id] += 1
        elif isinstance(part, ast.arg):
            found.arguments.add(part.arg)
    return found

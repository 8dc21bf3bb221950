"""torch's trees of containers (`torch.utils._pytree`) in plain Python; copied into ports.

Lists, tuples, named tuples and dictionaries are nodes, in the order in which they were filled;
everything else, None too, is a leaf, as in torch 2.13.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any


class TreeSpec:
    """The form of a tree without its leaves."""

    def __init__(self, kind: Any, keys: Any, parts: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = kind, keys, parts

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        if self.type is None:
            return 1
        return sum(part.num_leaves for part in self.children_specs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return "*" if self.type is None else f"{self.type.__name__}({self.children_specs})"


_LEAF = TreeSpec(None, None, [])


def _opened(tree: Any) -> tuple[Any, Any, list[Any]] | None:
    """Kind, keys and parts of a node; None of a leaf."""
    kind = type(tree)
    if kind in (dict, collections.OrderedDict):
        return kind, list(tree), list(tree.values())
    if kind is collections.defaultdict:
        return kind, (tree.default_factory, list(tree)), list(tree.values())
    if kind is collections.deque:
        return kind, tree.maxlen, list(tree)
    if kind in (list, tuple) or (isinstance(tree, tuple) and hasattr(kind, "_fields")):
        return kind, None, list(tree)
    return None


def _closed(spec: TreeSpec, parts: list[Any]) -> Any:
    kind, keys = spec.type, spec.context
    if kind is collections.defaultdict:
        return kind(keys[0], zip(keys[1], parts, strict=True))
    if kind is collections.deque:
        return kind(parts, keys)
    if keys is not None:
        return kind(zip(keys, parts, strict=True))
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree in order, and its form."""
    opened = None if is_leaf is not None and is_leaf(tree) else _opened(tree)
    if opened is None:
        return [tree], _LEAF
    kind, keys, parts = opened
    leaves: list[Any] = []
    forms = []
    for part in parts:
        found, form = tree_flatten(part, is_leaf)
        leaves += found
        forms.append(form)
    return leaves, TreeSpec(kind, keys, forms)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of this form with these leaves."""
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(f"{len(given)} leaves for a tree of {treespec.num_leaves}: {treespec!r}")
    rest = iter(given)

    def made(spec: TreeSpec) -> Any:
        if spec.type is None:
            return next(rest)
        return _closed(spec, [made(part) for part in spec.children_specs])

    return made(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_map(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The tree with `func` of each leaf, and of the leaves of other trees in the same places."""
    leaves, form = tree_flatten(tree, is_leaf)
    others = [tree_flatten(rest, is_leaf) for rest in rests]
    for _, other in others:
        if other != form:
            raise ValueError(f"trees of different forms: {form!r} and {other!r}")
    columns = zip(leaves, *(found for found, _ in others), strict=True)
    return tree_unflatten([func(*column) for column in columns], form)


def tree_map_only(
    kinds: Any,
    func: Callable[[Any], Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The tree with `func` of each leaf of these types."""

    def changed(leaf: Any) -> Any:
        return func(leaf) if isinstance(leaf, kinds) else leaf

    return tree_map(changed, tree, is_leaf=is_leaf)

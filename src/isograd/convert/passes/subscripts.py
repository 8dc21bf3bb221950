"""Elements taken by what MindSpore's own index refuses, or crashes at in its gradient."""

from __future__ import annotations

import ast
import itertools

from isograd.convert.file import FileEdit
from isograd.convert.indexes import has_inner_steps, is_ellipsis, parts_of
from isograd.convert.integer_expressions import may_be_integer
from isograd.convert.operator_signs import SIGNS
from isograd.convert.passes.augmented import strided
from isograd.convert.passes.elements import elements, key_of
from isograd.convert.passes.example import Example
from isograd.convert.passes.masks import is_behind_slices, is_mask
from isograd.convert.passes.numpy_arrays import is_array, is_of_numpy
from isograd.convert.passes.order import Stage
from isograd.convert.passes.reach_of_writes import is_in_forward, scope_of
from isograd.convert.places import place
from isograd.convert.tree import counted_by, is_none

_SEARCHES = frozenset(("torch.nonzero", "torch.argwhere"))
_LISTS = (ast.List, ast.ListComp)
_ORDER = (
    "torch takes the number of this index first; MindSpore takes it for positions, whose axis "
    "comes first in what is written"
)
_ORDER_ADVICE = "Turn the values round, or write x[n : n + 1, …] instead of x[n, …]."


class NumpyIndices:
    """`x[order]` where order was made by numpy or scipy, or is a range; or where one writes.

    And `x[mask, 1:]`, where MindSpore takes a mask of several axes for one of a single axis.
    """

    kinds = (ast.Subscript,)
    examples = (
        Example(
            "an order that numpy made",
            """
            import numpy as np


            def f(x: torch.Tensor, y: torch.Tensor):
                return x[np.argsort([3, 1, 2])]
            """,
        ),
    )
    counterexamples = (
        Example(
            "an order that torch made",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[torch.argsort(y)]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements by a function, which sees whether x is a tensor."""
        assert isinstance(node, ast.Subscript)
        if is_array(node.value, file) or place(node.value) in file.facts.lists:
            return False  # of modules: PickedModules
        if not isinstance(node.ctx, ast.Load):
            return isinstance(node.ctx, ast.Store) and _stored(node, file)
        parts = parts_of(node.slice)
        has_array = any(is_of_numpy(part, file) for part in parts)
        has_mask = any(
            is_mask(part, file) and (any(map(_is_gap, parts[n:])) or any(map(is_ellipsis, parts)))
            for n, part in enumerate(parts)
        )
        has_mask = has_mask or is_behind_slices(node, file)
        if not has_array and not has_mask:
            return False
        if not has_array and all(_is_all(part) for part in parts[1:]):
            file.replace(node, f"{file.source(node.value)}[{file.source(parts[0])}]")
            return True
        _write_at(node, file)
        return True


class NumbersBesidePositions:
    """`x[0, :, order]`: torch takes the number first, and MindSpore both as positions, as numpy.

    Where something stands between them, the axis of the positions goes to the front then.
    """

    kinds = (ast.Subscript,)
    examples = (
        Example(
            "a number beside positions",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                order = torch.argsort(y)
                return x[0, :, order]
            """,
        ),
        Example(
            "one element, by elements of a tensor",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                order = torch.argsort(y)
                return x[order[0], order[1]]
            """,
        ),
    )
    counterexamples = (
        Example(
            "a number beside a slice",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[0, :, 1:]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the numbers first; of what may be no tensor, where the port runs."""
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.slice, ast.Tuple) or isinstance(node.ctx, ast.Del):
            return False
        parts = node.slice.elts
        is_single = isinstance(node.ctx, ast.Load) and _is_single_element(parts, file)
        if not (is_single or _mixes(parts, file)) or is_array(node.value, file):
            return False
        if is_single:
            _write_at(node, file)
            return True
        if isinstance(node.ctx, ast.Store):
            _tell_stored(node, parts, file)
            return False
        count = next(n for n, part in enumerate(parts) if not _is_plain_number(part))
        numbers, others = parts[:count], parts[count:]
        owner = file.source(node.value)
        if numbers and place(node) in file.facts.indexed and not _mixes(others, file):
            first, rest = (", ".join(map(file.source, some)) for some in (numbers, others))
            file.replace(node, f"{owner}[{first}][{rest}]")
        else:
            _write_at(node, file)
        return True


def _write_at(node: ast.Subscript, file: FileEdit) -> None:
    """Take the elements by a function, which sees what the index is."""
    owner, key = file.source(node.value), key_of(node.slice, file)
    file.replace(node, f"{file.name('composites.at')}({owner}, {key})")


def _is_single_element(parts: list[ast.expr], file: FileEdit) -> bool:
    """Whether `scores[tags[i], tags[i + 1]]` may take a single element.

    MindSpore's gradient of that refuses: ScatterNd takes no single position of several axes.
    """
    return not any(map(_is_gap, parts)) and any(
        isinstance(part, ast.Subscript)
        and isinstance(part.value, ast.Name)
        and not isinstance(part.slice, (ast.Slice, ast.Tuple, *_LISTS))
        and (place(part) in file.facts.indexed or may_be_integer(part, file))
        for part in parts
    )


def _tell_stored(node: ast.Subscript, parts: list[ast.expr], file: FileEdit) -> None:
    """Tell what is written by a number beside positions, unless it is one number for all."""
    written = file.tree.parents.get(node)
    is_one = isinstance(written, (ast.Assign, ast.AugAssign)) and isinstance(
        written.value, ast.Constant
    )
    takes = [_takes_positions(part, file) for part in parts if not _is_gap(part)]
    if any(takes) and not all(takes) and not is_one:
        file.finding(node, "index-order", _ORDER, _ORDER_ADVICE)


def _mixes(parts: list[ast.expr], file: FileEdit) -> bool:
    """Whether a number and positions may stand in an index with something between them.

    Positions that begin the index are its first axis either way.
    """
    gaps = [n for n, part in enumerate(parts) if _is_gap(part)]
    return any(
        any(min(number, other) < gap < max(number, other) for gap in gaps)
        and (number < other or other > 0)
        and _may_be_both(parts[number], parts[other], file)
        for number, other in itertools.permutations(range(len(parts)), 2)
    )


def _may_be_both(number: ast.expr, positions: ast.expr, file: FileEdit) -> bool:
    """Whether one part of an index may be a number and another positions, and one of them is seen.

    Of two names of which nothing is seen, both are mostly numbers.  A tensor of integers may
    be a single one, of `scores.argmax()`.
    """
    if _is_gap(number) or isinstance(number, _LISTS) or _is_gap(positions):
        return False
    if _is_plain_number(positions) or _is_counter(positions, file):
        return False
    return _is_plain_number(number) or _takes_positions(positions, file)


def _is_gap(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) or is_none(part) or is_ellipsis(part)


def _is_all(part: ast.expr) -> bool:
    """Whether a part of an index takes all of an axis, or of the axes that are left."""
    if is_ellipsis(part):
        return True
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None


def _is_plain_number(part: ast.expr) -> bool:
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
        part = part.operand
    return isinstance(part, ast.Constant) and type(part.value) is int


def _takes_positions(part: ast.expr, file: FileEdit) -> bool:
    return isinstance(part, _LISTS) or may_be_integer(part, file)


def _is_counter(part: ast.expr, file: FileEdit) -> bool:
    """Whether a name counts the rounds of a loop."""
    loops = file.tree.of(ast.For, ast.comprehension)
    return isinstance(part, ast.Name) and any(part.id in counted_by(loop) for loop in loops)


def _stored(node: ast.Subscript, file: FileEdit) -> bool:
    """`x[order] = 0` at positions of numpy's, and at those that were looked for: perhaps none."""
    written = file.tree.parents.get(node)
    is_alone = isinstance(written, ast.Assign) and written.targets == [node]
    if is_alone or not is_stored_by_function(node, written, file):
        return False  # what stands alone is for `Stores`, which sees its value converted
    if isinstance(written, ast.AugAssign) and type(written.op) in SIGNS:
        if is_in_forward(node, file):
            return False  # the static graph sees no `elements(…)[…] +=`
    file.replace(node, elements(node, file, stored=True))
    return True


def is_stored_by_function(node: ast.Subscript, written: ast.AST | None, file: FileEdit) -> bool:
    """Whether MindSpore may refuse the places of a write."""
    if not isinstance(written, (ast.Assign, ast.AugAssign)) or is_array(node.value, file):
        return False
    if any(is_of_numpy(part, file) for part in parts_of(node.slice)):
        return True
    return isinstance(written, ast.Assign) and _may_be_none(node.slice, file)


def _may_be_none(index: ast.expr, file: FileEdit, seen: frozenset[str] = frozenset()) -> bool:
    """Whether an index is of the positions where something holds: MindSpore refuses none."""
    root: ast.expr = index
    while not _is_search(root, file):
        if isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
            root = root.func.value
        elif isinstance(root, (ast.Subscript, ast.Attribute)):
            root = root.value
        else:
            break
    if not isinstance(root, ast.Name):
        return _is_search(root, file)
    if root.id in seen:
        return False
    known = seen | {root.id}
    values = scope_of(root, file).values_of(root.id)
    return any(_may_be_none(value, file, known) for value in values)


def _is_search(node: ast.expr, file: FileEdit) -> bool:
    if not isinstance(node, ast.Call):
        return False
    api = file.api_of_call(node)
    if api == "torch.where":
        return len(node.args) == 1 and not node.keywords
    return api in _SEARCHES or getattr(node.func, "attr", "") in ("nonzero", "argwhere")


class Subscripts:
    """`x[..., 0::2, 1::2, :]`, `x[:, ::2]`."""

    kinds = (ast.Subscript,)
    stage = Stage.GENERAL
    examples = (
        Example(
            "every second element of two axes",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[..., 0::2, 1::2, :]
            """,
        ),
    )
    counterexamples = (
        Example(
            "a plain slice",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return x[:, 1:]
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements along one axis after the other."""
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.ctx, ast.Load) or not has_inner_steps(node.slice):
            return False
        start, end = file.text.span(node)
        file.keep_sources(node)  # what is written to stays as it is
        file.text.replace(start, end, strided(node, file))
        file.uses += 1
        file.converted += 1
        return True

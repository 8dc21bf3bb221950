"""Elements taken by what MindSpore's own index refuses, or crashes at in its gradient."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from isograd.convert.file import FileEdit
from isograd.convert.integer_expressions import may_be_integer
from isograd.convert.passes.augmented import strided
from isograd.convert.passes.elements import elements, key_of
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.places import place
from isograd.convert.tree import (
    counted_by,
    has_inner_steps,
    imported_from,
    is_ellipsis,
    is_none,
    names_of,
    pairs_of,
    parts_of,
)

_OF_NUMBERS = ("numpy", "scipy")
_SEARCHES = frozenset(("torch.nonzero", "torch.argwhere"))
_LISTS = (ast.List, ast.ListComp)
_ORDER = (
    "torch takes the number of this index first; MindSpore takes it for positions, whose axis "
    "comes first in what is written"
)
_ORDER_ADVICE = "Turn the values round, or write x[n : n + 1, …] instead of x[n, …]."
#: Methods of numpy's random generators that give positions.
_OF_GENERATORS = frozenset("choice permutation integers randint".split())
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class NumpyIndices:
    """`x[order]` where order was made by numpy or scipy, or is a range; or where one writes.

    And `x[..., mask]`, which MindSpore refuses of a mask of several axes.
    """

    kinds = (ast.Subscript,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements by a function, which sees whether x is a tensor."""
        assert isinstance(node, ast.Subscript)
        if _is_array(node.value, file):
            return False
        if not isinstance(node.ctx, ast.Load):
            return isinstance(node.ctx, ast.Store) and _stored(node, file)
        parts = parts_of(node.slice)
        is_of_numpy = any(_is_of_numpy(part, file) for part in parts)
        has_mask = any(map(is_ellipsis, parts)) and any(_is_mask(part, file) for part in parts)
        if not is_of_numpy and not has_mask:
            return False
        owner, key = file.source(node.value), key_of(node.slice, file)
        file.replace(node, f"{file.name('composites.at')}({owner}, {key})")
        return True


class NumbersBesidePositions:
    """`x[0, :, order]`: torch takes the number first, and MindSpore both as positions, as numpy.

    Where something stands between them, the axis of the positions goes to the front then.
    """

    kinds = (ast.Subscript,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the numbers first; of what may be no tensor, where the port runs."""
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.slice, ast.Tuple) or isinstance(node.ctx, ast.Del):
            return False
        parts = node.slice.elts
        if not _mixes(parts, file) or _is_array(node.value, file):
            return False
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
            key = key_of(node.slice, file)
            file.replace(node, f"{file.name('composites.at')}({owner}, {key})")
        return True


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


def _is_mask(node: ast.expr, file: FileEdit) -> bool:
    """Whether a part of an index is a mask by how it, or what its name holds, is written."""
    if not isinstance(node, ast.Name):
        return _is_condition(node, file)
    return any(_is_condition(value, file) for value in scope_of(node, file).values_of(node.id))


def _is_condition(node: ast.expr, file: FileEdit) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.Call):
        kinds = [part.value for part in node.keywords if part.arg == "dtype"]
        is_cast = isinstance(node.func, ast.Attribute) and node.func.attr == "bool"
        return is_cast or any(getattr(file.use(kind), "api", "") == "torch.bool" for kind in kinds)
    return isinstance(node, ast.Compare)


def _stored(node: ast.Subscript, file: FileEdit) -> bool:
    """`x[order] = 0` at positions of numpy's, and at those that were looked for: perhaps none."""
    written = file.tree.parents.get(node)
    if not isinstance(written, (ast.Assign, ast.AugAssign)):
        return False
    are_numpys = any(_is_of_numpy(part, file) for part in parts_of(node.slice))
    if are_numpys or (isinstance(written, ast.Assign) and _may_be_none(node.slice, file)):
        file.replace(node, elements(node, file))
        return True
    return False


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


def _is_of_numpy(node: ast.expr, file: FileEdit) -> bool:
    """Whether a part of an index is an array, a number or a range by what it was made by."""
    if not _has_arrays(file):
        return False
    if isinstance(node, ast.BinOp):
        return _is_arithmetic_of_numpy(node, file)
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
        parts = node.values if isinstance(node, ast.Dict) else node.elts
        return bool(parts) and all(_is_of_numpy(part, file) for part in parts)
    if isinstance(node, (ast.Slice, ast.Compare, ast.ListComp, ast.IfExp)):
        return any(_is_of_numpy(part, file) for part in _deciding(node))
    if _is_range(node) or _is_call_of_numpy(node, file):
        return True
    while isinstance(node, ast.Subscript):
        node = node.value
    if not isinstance(node, ast.Name):
        return _is_call_of_numpy(node, file)
    loop = file.tree.loop(node)
    if isinstance(loop, ast.comprehension):
        pairs = _gone_through(loop.target, loop.iter)
        return any(node.id in names_of(one) and _is_of_numpy(of, file) for one, of in pairs)
    functions = _made_by_numpy(file).get(node.id, frozenset())
    if not functions:
        return False
    return (file.tree.function(node) if file.tree.is_own(node.id, node) else None) in functions


def _is_array(node: ast.expr, file: FileEdit) -> bool:
    """Whether what is indexed is an array whatever its name was bound to, and never a tensor."""
    if not _is_of_numpy(node, file):
        return False
    root = node
    while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
        if not isinstance(root, ast.Call):
            root = root.value
            continue
        root = root.func
        if isinstance(root, ast.Name):
            return root.id in _names_of_numpy(file)
        if getattr(root, "attr", "") == "numpy":
            return True
    if not isinstance(root, ast.Name):
        return True
    return all(_is_of_numpy(value, file) for value in scope_of(node, file).values_of(root.id))


def _deciding(node: ast.Slice | ast.Compare | ast.ListComp | ast.IfExp) -> list[ast.expr]:
    """The parts of an expression of which one of numpy's makes it one."""
    if isinstance(node, ast.Slice):
        return [end for end in (node.lower, node.upper, node.step) if end is not None]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.elt] if isinstance(node, ast.ListComp) else [node.body, node.orelse]


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"


def _is_arithmetic_of_numpy(node: ast.BinOp, file: FileEdit) -> bool:
    """Whether arrays and numbers alone are computed with: beside a tensor they are tensors."""
    parts = [part for part in (node.left, node.right) if not isinstance(part, ast.Constant)]
    return bool(parts) and all(_is_of_numpy(part, file) for part in parts)


def _is_call_of_numpy(node: ast.expr, file: FileEdit) -> bool:
    """Whether a call is of numpy or scipy, of an array, or draws positions from a generator.

    An array is made by `x.numpy()` as well.
    """
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_GENERATORS:
        if file.use(node.func) is None and _names_of_numpy(file):
            return True
    if isinstance(node.func, ast.Name):
        return node.func.id in _names_of_numpy(file) or _is_of_numpy(node.func, file)
    root: ast.expr = node
    while isinstance(root, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(root, ast.Call) and getattr(root.func, "attr", "") == "numpy":
            return True
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name):
        return False
    return root.id in _names_of_numpy(file) or _is_of_numpy(root, file)


def _has_arrays(file: FileEdit) -> bool:
    """Whether anything in a file makes an array or keeps a range; nothing does in most files."""
    if file.has_arrays is None:
        file.has_arrays = bool(_names_of_numpy(file)) or any(
            getattr(node.func, "attr", "") == "numpy"
            or (_is_range(node) and not _is_gone_through(node, file))
            for node in file.tree.of(ast.Call)
        )
    return file.has_arrays


def _is_gone_through(node: ast.Call, file: FileEdit) -> bool:
    around = file.tree.parents.get(node)
    return isinstance(around, (ast.For, ast.comprehension)) and around.iter is node


def _names_of_numpy(file: FileEdit) -> frozenset[str]:
    """What is imported from numpy and scipy."""
    if file.names_of_numpy is None:
        file.names_of_numpy = imported_from(file.tree, _OF_NUMBERS)
    return file.names_of_numpy


def _made_by_numpy(file: FileEdit) -> Mapping[str, Set[ast.AST | None]]:
    """Names that hold what numpy or scipy returned, or a range, with their functions.

    And names of a part of such an array, `batch = order[start : start + 32]`, and of functions of
    the file that return one.
    """
    if file.made_by_numpy is None:
        found = file.made_by_numpy = defaultdict[str, set[ast.AST | None]](set)
        nodes = file.tree.of(ast.Assign, ast.For)
        bound = [pair for node in nodes for pair in _bound_by(node)]
        bound += [pair for node in file.tree.of(ast.Return) for pair in _returned(node, file)]
        known = -1
        while known < sum(map(len, found.values())):
            known = sum(map(len, found.values()))
            for target, value in bound:
                if _is_of_numpy(value, file):
                    for name in _bound_names(target):
                        found[name].add(file.tree.function(target))
    return file.made_by_numpy


def _bound_names(target: ast.AST) -> list[str]:
    return [target.name] if isinstance(target, _FUNCTIONS) else names_of(target)


def _returned(node: ast.Return, file: FileEdit) -> list[tuple[ast.AST, ast.expr]]:
    """A function with what it returns, alone or in a tuple: `x1, x2 = random_box(x.size())`."""
    function = file.tree.function(node)
    if function is None or node.value is None:
        return []
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return [(function, part) for part in parts]


def _bound_by(node: ast.AST) -> Sequence[tuple[ast.AST, ast.expr]]:
    """What an assignment binds, and a loop of its names to elements of what it goes through."""
    if isinstance(node, ast.Assign):
        return [pair for target in node.targets for pair in pairs_of(target, node.value)]
    assert isinstance(node, ast.For)
    return _gone_through(node.target, node.iter)


def _gone_through(target: ast.expr, source: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    by = getattr(source.func, "id", "") if isinstance(source, ast.Call) else ""
    if by == "range":
        return []
    given = source.args if isinstance(source, ast.Call) else []
    targets = target.elts if isinstance(target, ast.Tuple) else []
    if by == "enumerate" and len(targets) == 2 and given:
        return _gone_through(targets[1], given[0])
    if by == "zip":
        pairs = zip(targets, given, strict=False)
        return [found for pair in pairs for found in _gone_through(*pair)]
    return [(target, source)]


class Subscripts:
    """`x[..., 0::2, 1::2, :]`, `x[:, ::2]`."""

    kinds = (ast.Subscript,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Take the elements along one axis after the other."""
        assert isinstance(node, ast.Subscript)
        if not isinstance(node.ctx, ast.Load) or not has_inner_steps(node.slice):
            return False
        start, end = file.text.span(node)
        file.text.replace(start, end, strided(node, file))
        file.uses += 1
        file.converted += 1
        return True

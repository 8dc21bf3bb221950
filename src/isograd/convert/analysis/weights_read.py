"""Whether a project reads the weight of a Conv1d by its axes: MindSpore's holds one more.

Its nn.Conv1d keeps (out, in, 1, k) where torch's keeps (out, in, k).  What looks at the weight, or
writes values of that shape, needs the runtime's class; to draw initial values takes any shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from isograd.convert.analysis.parameter_loops import is_over_parameters
from isograd.convert.file_facts import FileFacts
from isograd.convert.places import place
from isograd.convert.tree import is_none
from isograd.scan.values import ANY_MODULE, Made

CONV1D = "torch.nn.Conv1d"
#: A file without these asks nothing of a weight.
ASKED = ("weight", "parameters", "params")
REASON = "its weight is read or written, which has a fourth axis in MindSpore's"

_INITIAL = "torch.nn.init."
#: Those to which axes are not alike.
_UNEVEN = frozenset(("dirac_", "dirac"))
#: What has no axes, or the same answer whatever they are.
_OF_ANY_SHAPE = frozenset(
    """dtype device requires_grad requires_grad_ is_leaf is_cuda numel nelement element_size
    data_ptr normal_ uniform_ fill_ zero_""".split()
)
#: Numbers of all elements, where no axis is given.
_OF_ALL = frozenset("sum mean norm std var max min".split())
#: Of a Parameter that any layer may hold, what is asked for its axes.
_AXES = frozenset("dim ndim ndimension shape size permute".split())
_ELEMENTWISE = frozenset("abs square detach clone float cpu".split())


def reads_conv1d(file: FileFacts) -> bool:
    """Whether a file reads or sets a weight that may be a Conv1d's, and by its axes."""
    if any(_by_axes(node, file) and _may_be_conv1d(node, of, file) for node, of in _weights(file)):
        return True
    return any(_is_of_a_parameter(node, file) for node in file.tree.of(ast.Attribute))


def _is_of_a_parameter(node: ast.AST, file: FileFacts) -> bool:
    """`p.shape` and its like, in a loop over a network's parameters."""
    assert isinstance(node, ast.Attribute)
    if node.attr not in _AXES or not isinstance(node.value, ast.Name):
        return False
    loop = file.tree.loop(node.value)
    if loop is None or not is_over_parameters(loop) or _is_of_any_shape(node, file):
        return False
    asked = file.tree.parents.get(node)
    if isinstance(asked, ast.Call):  # `p.dim()` and `len(p.shape)`
        asked = file.tree.parents.get(asked)
    if not isinstance(asked, ast.Compare):
        return True
    sides = [getattr(part, "value", None) for part in (asked.left, *asked.comparators)]
    return not any(side in (0, 1, 2) for side in sides)


def _weights(file: FileFacts) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`m.weight` and `getattr(m, "weight")`, each with its `m`."""
    for node in file.tree.of(ast.Attribute, ast.Call):
        if isinstance(node, ast.Attribute):
            if node.attr == "weight":
                yield node, node.value
        elif getattr(node.func, "id", "") in ("getattr", "setattr"):
            if len(node.args) > 1 and getattr(node.args[1], "value", None) == "weight":
                yield node, node.args[0]


def _may_be_conv1d(node: ast.expr, owner: ast.expr, file: FileFacts) -> bool:
    held = file.layers_held(owner)
    if held:
        return CONV1D in held
    if isinstance(node, ast.Call):
        return getattr(owner, "id", "") not in ("self", "cls")
    owners = file.facts.layer_owners
    if place(node) not in owners:
        return False
    return owners[place(node)] in (None, ANY_MODULE, Made(CONV1D))


def _by_axes(node: ast.expr, file: FileFacts) -> bool:
    """Whether what is done with a weight may depend on its axes."""
    inner: ast.AST = node
    parent = file.tree.parents.get(node)
    while isinstance(parent, ast.Attribute) and parent.attr == "data" and _is_read(parent):
        inner, parent = parent, file.tree.parents.get(parent)
    if not _is_read(inner):
        return True
    if isinstance(parent, ast.Attribute):
        return not _is_of_any_shape(parent, file)
    if isinstance(parent, ast.Compare):
        return not any(map(is_none, (parent.left, *parent.comparators)))
    if isinstance(parent, ast.Call) and inner in parent.args:
        api = file.api_of_call(parent)
        is_drawn = api.startswith(_INITIAL) and api.rpartition(".")[2] not in _UNEVEN
        return not (is_drawn and isinstance(file.tree.parents.get(parent), ast.Expr))
    return not isinstance(parent, ast.Expr)


def _is_read(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") != "setattr"
    return isinstance(getattr(node, "ctx", None), ast.Load)


def _is_of_any_shape(member: ast.Attribute, file: FileFacts) -> bool:
    """Whether `w.member` is the same of (out, in, k) and (out, in, 1, k)."""
    if member.attr in _OF_ANY_SHAPE:
        return True
    parent = file.tree.parents.get(member)
    if member.attr == "shape":
        return isinstance(parent, ast.Subscript) and _is_channel(parent.slice)
    if not isinstance(parent, ast.Call) or parent.func is not member:
        return False
    if member.attr == "size":
        return len(parent.args) == 1 and _is_channel(parent.args[0])
    if parent.args or parent.keywords:
        return False
    if member.attr in _ELEMENTWISE:
        return not _by_axes(parent, file)
    return member.attr in _OF_ALL


def _is_channel(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (0, 1)

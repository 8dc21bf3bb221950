"""Where a function of MindSpore's is all that a write into a Parameter's data takes."""

from __future__ import annotations

import ast
from dataclasses import replace

from isograd.convert import layout
from isograd.convert.analysis.layers import bound_locally
from isograd.convert.file import FileEdit
from isograd.knowledge.rewrite import NotRewritten

_SWITCHES = ("torch.no_grad", "torch.inference_mode")
#: Methods whose values are of the tensor's own dtype, whatever they are given.
_OF_OWN_DTYPE = frozenset("zero_ fill_ normal_ uniform_".split())
_DRAWN = frozenset(("normal_", "uniform_"))


def assigned(owner: ast.expr, held: str, code: str, node: ast.Call, file: FileEdit) -> str:
    """`ops.assign(m.weight, values)` of a known Parameter whose data a statement writes.

    Empty elsewhere.  `ops.assign` records nothing, as a write into `p.data`: a gradient goes on as
    if nothing had been written, also where the Parameter was used before.  It neither broadcasts
    nor lowers a dtype, which `copy_` of torch does; other methods have values of the shape.
    """
    if not (file.tree.is_statement(node) and file.is_parameter(owner)):
        return ""
    method = node.func
    if not isinstance(method, ast.Attribute):
        return ""
    if method.attr in _DRAWN and (drawn := _drawn(method.attr, held, node, file)):
        return drawn
    if method.attr == "copy_":
        code = f"{file.name('ops.broadcast_to')}({code}, {held}.shape).astype({held}.dtype)"
    elif method.attr not in _OF_OWN_DTYPE and not _is_of_numbers(node):
        code = f"{layout.closed(code)}.astype({held}.dtype)"
    return f"{file.name('ops.assign')}({held}, {code})"


def _drawn(method: str, held: str, node: ast.Call, file: FileEdit) -> str:
    """The Parameter's start by an initializer of MindSpore's, as of torch.nn.init."""
    entry, call = file.entry(f"torch.nn.init.{method}"), file.call(node)
    if entry is None or isinstance(call, NotRewritten):
        return ""
    given = replace(call, positional=(held, *call.positional), parameters=frozenset((held,)))
    found = file.rewritten(entry, given)
    return "" if isinstance(found, NotRewritten) or found.is_runtime else found.code


def _is_of_numbers(node: ast.Call) -> bool:
    """Whether a call is given nothing but numbers that are written out."""
    given = [*node.args, *(part.value for part in node.keywords)]
    return all(isinstance(part, ast.Constant) and _is_real(part.value) for part in given)


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def rebound(owner: ast.expr, held: str, value: ast.expr, file: FileEdit) -> str:
    """`p.set_data(values.copy(), …)` for `p.data = values` of a known Parameter; empty elsewhere.

    What was read of its data before keeps its values, as in torch; a copy, as MindSpore 2.10 writes
    to no Parameter that holds a view.  A compiled step keeps to the memory that a Parameter had,
    so that only constructors of such projects give it another one.
    """
    function = file.tree.function(owner)
    is_compiled = file.settings.compiles_steps and getattr(function, "name", "") != "__init__"
    if is_compiled or not file.is_parameter(owner):
        return ""
    values = layout.closed(file.argument(value))
    return f"{held}.set_data({values}.copy(), slice_shape=True)"


def is_plain_copy(owner: ast.expr, node: ast.Call, file: FileEdit) -> bool:
    """Whether `m.weight.data.copy_(w)` writes what is computed into a layer made here, unrecorded.

    `copy_` casts and broadcasts as torch does, but refuses some views (2.10, CPU); recorded, it
    would raise, or take the gradient away that what is written to `p.data` leaves.
    """
    if not isinstance(owner, ast.Attribute) or not isinstance(owner.value, ast.Name):
        return False
    if not _copies_into(owner, node) or not file.tree.is_statement(node):
        return False
    made = bound_locally(owner.value, file.tree)
    if not made or not all(isinstance(value, ast.Call) for value in made):
        return False
    is_known = file.is_parameter(owner) and _is_computed(node.args[0], file)
    return is_known and _is_unrecorded(node, file)


def _copies_into(owner: ast.Attribute, node: ast.Call) -> bool:
    """Whether a call is `owner.data.copy_(values)`."""
    method = node.func
    if not isinstance(method, ast.Attribute) or method.attr != "copy_":
        return False
    is_of_owner = getattr(method.value, "value", None) is owner
    return is_of_owner and len(node.args) == 1 and not node.keywords


def _is_computed(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression, or all that binds its name, is arithmetic: it is no view."""
    if isinstance(node, ast.Name):
        values = bound_locally(node, file.tree)
        return bool(values) and all(isinstance(value, ast.BinOp) for value in values)
    return isinstance(node, ast.BinOp)


def _is_unrecorded(node: ast.AST, file: FileEdit) -> bool:
    """Whether the innermost function, or a block in it, records no gradients.

    A decorator may go away (UnrecordedFunctions), so it counts where nothing is recorded at all.
    """
    for part in file.tree.above(node):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            switches = [item.context_expr for item in part.items]
        else:
            switches = (
                [] if file.settings.records_gradients else getattr(part, "decorator_list", [])
            )
        for switch in switches:
            named = switch.func if isinstance(switch, ast.Call) else switch
            if file.named.get(named, "") in _SWITCHES and not getattr(switch, "args", None):
                return True
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return False
    return False

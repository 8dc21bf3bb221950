"""Values written into parameters: `p.data = …`, `p.data -= …`, `p -= rate * p.grad`."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.parameter_loops import is_over_parameters
from isograd.convert.bindings import parted
from isograd.convert.data_aliases import is_data
from isograd.convert.file import FileEdit
from isograd.convert.leaves import values_of
from isograd.convert.model import Level
from isograd.convert.operator_signs import SIGNS
from isograd.convert.parameter_copies import rebound
from isograd.convert.passes.elements import is_buffer, rebinds
from isograd.convert.passes.example import Example
from isograd.convert.passes.leaf_calls import leaf_of, makes_leaf
from isograd.convert.passes.reach_of_writes import is_in_forward, scope_of, tell_if_lost
from isograd.convert.places import place
from isograd.convert.tree import is_true, names_of
from isograd.scan.values import PARAMETER, Instance, Made

_ONE = "{0} and {1} share one storage from here on in torch; the port copies the values"
_OF_VIEW = (
    "{0} is a view, which this assignment parts from its tensor in torch; "
    "the port writes the values into both"
)
_OF_PART = "{0} is a new tensor, whose data nobody reads: this assignment reaches nothing in torch"
_ONE_ADVICE = "If both are to stay one, make it one Parameter: a.weight = b.weight"

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
#: What a loop goes through of a dictionary of tensors.
_OF_DICTIONARIES = ("values", "items")


class Writes:
    """Assignments that change a parameter in torch, and would only bind a name in a port."""

    kinds = (ast.Assign, ast.AugAssign, ast.Call)
    after = ("TakenByCopy",)
    examples = (
        Example(
            "new data of a parameter",
            """
            layer = nn.Linear(2, 2)
            layer.weight.data = torch.ones(2, 2)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a name that is bound anew",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                y = torch.ones(2, 2)
                return x + y
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the call that puts the values there."""
        if isinstance(node, ast.Assign):
            return _assigned(node, file)
        if isinstance(node, ast.Call):
            _report_shared(node, file)
            return _asked_to_learn(node, file)
        assert isinstance(node, ast.AugAssign)
        return _augmented(node, file)


class Leaves:
    """`[torch.zeros(3, requires_grad=True)]`: leaves that are held, returned or passed on."""

    kinds = (
        ast.List,
        ast.Tuple,
        ast.Dict,
        ast.ListComp,
        ast.DictComp,
        ast.GeneratorExp,
        ast.Return,
        ast.Yield,
        ast.Call,
        ast.IfExp,
        ast.BoolOp,
        ast.NamedExpr,
        ast.AnnAssign,
        ast.Lambda,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
    )
    examples = (
        Example("leaves in a list", "values = [torch.zeros(3, requires_grad=True)]"),
        Example(
            "a leaf under a condition",
            """
            def bias(wanted: bool, learns: bool):
                return torch.zeros(3, requires_grad=learns) if wanted else None
            """,
        ),
    )
    counterexamples = (Example("tensors in a list", "values = [torch.zeros(3)]"),)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write what makes a tensor a leaf; what holds it is for other passes."""
        for value in _held_by(node, file):
            if makes_leaf(value, file):
                file.replace(value, leaf_of(value, file))
        return False


def _held_by(node: ast.AST, file: FileEdit) -> list[ast.expr]:
    """What a display, a function or a call of the project's holds or passes on."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if isinstance(node, (ast.Dict, ast.BoolOp)):
        return node.values
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [node.elt]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
        given = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        return [*given, node.body] if isinstance(node, ast.Lambda) else given
    if isinstance(node, (ast.Return, ast.Yield, ast.NamedExpr, ast.AnnAssign, ast.DictComp)):
        return [] if node.value is None else [node.value]
    if isinstance(node, ast.Call) and file.use(node.func) is None:
        return [*node.args, *(part.value for part in node.keywords)]
    return []


def _assigned(node: ast.Assign, file: FileEdit) -> bool:
    target = node.targets[0]
    if len(node.targets) != 1:
        return False
    if any(makes_leaf(value, file) for value in values_of(node.value)):
        is_whole = makes_leaf(node.value, file)
        made = leaf_of(node.value, file) if is_whole else file.source(node.value)
        if _is_of_module(target, file):  # where it would be a parameter of the network
            _replace(node, f"object.__setattr__(self, {target.attr!r}, {made})", file)  # type: ignore[attr-defined]
        elif is_whole:
            file.replace(node.value, made)
        return False
    if _begins_to_learn(target, node.value, file):
        assert isinstance(target, ast.Attribute)
        _replace(node, _learning(target.value, file), file)
        return True
    if not is_data(target):
        return False
    assert isinstance(target, ast.Attribute)
    held = target.value
    if isinstance(held, ast.Name) and scope_of(node, file).is_part(held.id, node):
        file.finding(node, "in-place-view", _OF_VIEW.format(held.id), level=Level.LOOK)
    if place(target.value) in file.facts.indexed:
        said = _OF_PART.format(ast.unparse(target.value))
        file.finding(node, "in-place-copy", said, level=Level.LOOK)
        return False
    if is_data(node.value):
        told = _ONE.format(ast.unparse(target), ast.unparse(node.value))
        file.finding(node, "in-place-view", told, _ONE_ADVICE, level=Level.LOOK)
    owner = file.source(held)
    if native := rebound(held, owner, node.value, file):
        _replace(node, native, file)
        return True
    call = file.name("composites.set_data")
    new = f"{call}({owner}, {file.argument(node.value)})"
    _replace(node, f"{owner} = {new}" if rebinds(held, node, file) else new, file)
    return True


def _report_shared(node: ast.Call, file: FileEdit) -> None:
    """`nn.Parameter(a.weight.data)`: an optimizer's step of the one changes the other in torch."""
    given = node.args[0] if node.args else None
    if file.api_of_call(node) in _PARAMETERS and given is not None and is_data(given):
        assert isinstance(given, ast.Attribute)
        if file.is_parameter(given.value):
            told = _ONE.format("the new Parameter", ast.unparse(given))
            file.finding(node, "in-place-view", told, _ONE_ADVICE, level=Level.LOOK)


def _is_of_module(target: ast.expr, file: FileEdit) -> bool:
    """`self.x` in a class of modules."""
    if not isinstance(target, ast.Attribute) or getattr(target.value, "id", "") != "self":
        return False
    owner = file.tree.owner(target)
    return owner is not None and file.is_module_class(owner)


def _learning(held: ast.expr, file: FileEdit) -> str:
    """What makes a leaf of the tensor that a name or an attribute holds."""
    if isinstance(held, ast.Attribute):
        call = file.name("composites.leaf_attribute")
        return f"{call}({file.source(held.value)}, {held.attr!r})"
    return f"{file.source(held)} = {file.name('composites.leaf')}({file.source(held)})"


def _asked_to_learn(node: ast.Call, file: FileEdit) -> bool:
    """`x.requires_grad_()`, of a plain name: what a gradient reaches is bound to it."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "requires_grad_":
        return False
    owner = node.func.value
    if not isinstance(owner, ast.Name) or not file.tree.is_statement(node):
        return False
    use = file.use(node.func)
    is_module = use is not None and use.api.startswith("torch.nn.Module.")
    if owner.id in ("self", "cls") or is_module or not _can_be_bound(owner, file):
        return False
    given = "".join(f", {file.argument(part)}" for part in node.args)
    given += "".join(f", {file.argument(part.value)}" for part in node.keywords)
    call = file.name("composites.tensor_requires_grad_")
    _replace(node, f"{owner.id} = {call}({owner.id}{given})", file)
    return True


def _begins_to_learn(target: ast.expr, value: ast.expr, file: FileEdit) -> bool:
    """`x.requires_grad = True`, where x is not known to be a Parameter or a module."""
    if not isinstance(target, ast.Attribute) or target.attr != "requires_grad":
        return False
    held = target.value
    if not is_true(value):
        return False
    if isinstance(held, ast.Name):
        return file.tree.is_own(held.id, held) and not _may_be_parameter(held, file)
    if not isinstance(held, ast.Attribute) or getattr(held.value, "id", "") != "self":
        return False
    owner = file.tree.owner(held)
    info = None if owner is None else file.class_info(owner)
    kept = None if info is None else info.attributes.get(held.attr)
    return kept is not PARAMETER and not isinstance(kept, (Made, Instance))


def _can_be_bound(name: ast.Name, file: FileEdit) -> bool:
    """Whether a name is its function's own, and no loop's over tensors that something holds."""
    return file.tree.is_own(name.id, name) and file.tree.loop(name) is None


def _augmented(node: ast.AugAssign, file: FileEdit) -> bool:
    sign = SIGNS.get(type(node.op))
    if sign is None:
        return False
    value = layout.operand(file, node.value)
    target = node.target
    if is_data(target):
        assert isinstance(target, ast.Attribute)
        owner = file.source(target.value)
        call = file.name("composites.write_data")
        if isinstance(target.value, ast.Name):
            tell_if_lost(target.value.id, node, file, is_whole=False)
        new = f"{call}({owner}, {owner}.data {sign} {value})"
        if rebinds(target.value, node, file):
            new = f"{owner} = {new}"
        elif is_in_forward(node, file) and is_buffer(target.value, file):
            new = f"{owner}.copy_({owner} {sign} {value})"
        _replace(node, new, file)
        return True
    is_step = isinstance(target, ast.Name) and _reads_gradient(node.value, target.id)
    if isinstance(target, ast.Name) and (is_step or _may_be_parameter(target, file)):
        name = target.id
        call = file.name("composites.updated")
        _replace(node, f"{name} = {call}({name}, {name} {sign} {value})", file)
        return True
    return False


def _replace(node: ast.stmt | ast.Call, code: str, file: FileEdit) -> None:
    layout.write_statement(file, node, code)
    file.uses += 1
    file.converted += 1


def _may_be_parameter(target: ast.Name, file: FileEdit) -> bool:
    """Whether a name is known to be a parameter, or goes through the parameters in a loop."""
    if file.facts.values.get(place(target)) is PARAMETER:
        return True
    loop = file.tree.loop(target)
    if loop is None or not is_over_parameters(loop):
        return False
    parts = parted(loop.target, loop.iter) if isinstance(loop, ast.For) else ()
    return not any(
        target.id in names_of(one) and getattr(of, "attr", "") in _OF_DICTIONARIES
        for one, of in parts
    )


def _reads_gradient(value: ast.expr, name: str) -> bool:
    """Whether a value is computed from the gradient of what a name holds."""
    return any(
        isinstance(part, ast.Attribute)
        and part.attr == "grad"
        and getattr(part.value, "id", "") == name
        for part in ast.walk(value)
    )

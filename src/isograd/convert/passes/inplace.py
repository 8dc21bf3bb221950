"""What changes a tensor in place: the new value is bound, or written where others see it."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.aliases import (
    Function,
    Reach,
    Sight,
    is_taken_by_copy,
    origin_of_write,
    rearranged,
)
from isograd.convert.file import FileEdit
from isograd.convert.held_data import is_data
from isograd.convert.located import place as place_of
from isograd.convert.model import Level
from isograd.convert.signs import SIGNS
from isograd.convert.tree import (
    defaults_of,
    has_inner_steps,
    is_ellipsis,
    is_laid_out,
    names_of,
    parts_of,
)
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import NotRewritten
from isograd.scan.values import PARAMETER

_IN_PLACE = "in_place"
_TENSOR = "torch.Tensor."
_COPY_INTO = "torch.Tensor.copy_"
_LOST = "{0} and {1} share memory in torch; this change does not reach {1} in MindSpore"
_LOST_ADVICE = "Write to the tensor itself: x[…] = …, or bind the new values and use them."
_CALLERS = "{0} is a view of an argument, and this change does not reach the caller's tensor"
_INPUT = "forward changes its input {0}, in torch for its caller as well; the port does not"
_COPY = "{0} is a copy, in torch as well: this change reaches nothing"
_COPY_ADVICE = "If it was meant to be changed, assign to it: {0} = …"
_SHAPE = "{0} has another shape from here on, and {1} as well in torch; not in the port"
_CHOSEN = "which tensor is changed in place is not known here; the port changes none"
_LONGEST_SHOWN = 60
#: Methods that return the tensor itself and are written elsewhere.
_RETURN_SELF = frozenset(("requires_grad_", "copy_"))
#: What may be a tensor of positions or a mask in an index.
_UNKNOWN_INDEX = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp)
#: Names of numbers that are kept in tables of settings, as in `total *= stride`.
_STRIDES = ("stride", "dilation")
#: What is added to lists and texts.
_PLAIN = (ast.List, ast.ListComp, ast.Tuple, ast.JoinedStr)
#: Methods that give what something holds.
_LOOKUPS = frozenset("get get_parameter get_buffer".split())
#: What an attribute is asked of without brackets.
_POSTFIX = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
#: Methods that change the shape, which a write into the tensor cannot.
_SHAPING = frozenset(
    "t_ unsqueeze_ squeeze_ transpose_ swapaxes_ swapdims_ resize_ resize_as_ set_".split()
)


class InPlace:
    """`x.add_(y)`: `x = x + y`, or `x.copy_(x + y)` where the tensor has other names."""

    kinds = (ast.Call,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the new value, and where it goes."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not isinstance(node.func, ast.Attribute):
            return False
        if not use.is_member:
            _tell_if_unbound(node, use, file)
            return False
        if use.api == _COPY_INTO and node.args:
            return _copy_into(node, node.func.value, use, file)
        entry = file.entry(use.api)
        if entry is None or entry.hazard != _IN_PLACE:
            return False
        if not entry.rewrite or entry.applicability is Applicability.HAND:
            return False
        file.uses += 1
        receiver = node.func.value
        call = file.call(node, file.argument(receiver))
        result = call if isinstance(call, NotRewritten) else file.rewritten(entry, call)
        if isinstance(result, NotRewritten):
            file.finding(node.func, "not-converted", result.reason, entry.advice, api=use.api)
            return True
        _write(node, receiver, result.code, use, entry, file)
        file.converted += 1
        return True


def _write(
    node: ast.Call, receiver: ast.expr, code: str, use: Use, entry: Entry, file: FileEdit
) -> None:
    target = _target(receiver, file)
    is_statement = file.tree.is_statement(node)
    if target is None:
        if not is_statement or not _write_view(receiver, "...", code, node, file):
            _write_alone(node, receiver, code, file)
        return
    if target is not receiver or isinstance(target, ast.Subscript):
        _tell_if_of_changed(target, node, file)
    if not is_statement and is_in_chain(node, file):
        if target is receiver:
            file.keep_sources(target)
        if not _is_read_in_chain(target, node, file):
            layout.write(file, node, code)
            return
    if isinstance(target, ast.Name) and use.owner is not PARAMETER:
        _write_name(target, node, code, file)
    elif isinstance(target, ast.Subscript):
        _write_element(target, node, code, file)
    elif isinstance(target, ast.Attribute) and target.attr == "data":
        _write_data(target, node, code, "composites.write", file)
    elif is_statement and isinstance(target, ast.Attribute) and target.attr == "grad":
        layout.write_statement(file, node, f"{_place(target, file)} = {code}")
    elif _may_be_computed(target, use, node, file):
        file.replace(node, f"{file.name('composites.overwrite')}({_place(target, file)}, {code})")
    else:
        file.replace(node, f"{_place(target, file)}.copy_({code})")


def _write_alone(node: ast.Call, receiver: ast.expr, code: str, file: FileEdit) -> None:
    """Write what no name holds: of a chain `x.mul_(2).add_(y)`, whose end is bound to the name."""
    _tell_lost(receiver, node, file)
    is_chosen = isinstance(receiver, (ast.IfExp, ast.BoolOp, ast.NamedExpr))
    if is_chosen or (file.tree.is_statement(node) and _may_be_held(receiver, file)):
        file.finding(node, "in-place-view", _CHOSEN, _LOST_ADVICE)
    layout.write(file, node, code)


def _may_be_computed(target: ast.expr, use: Use, node: ast.AST, file: FileEdit) -> bool:
    """Whether an attribute may hold what was computed, whose gradient goes on.

    MindSpore's `copy_` into a view (2.10; a Dense of three axes returns one) gives the gradient of
    what the tensor held to nobody.
    """
    if not isinstance(target, ast.Attribute) or use.owner is PARAMETER:
        return False
    function, is_own = function_of(node, file), getattr(target.value, "id", "") in ("self", "cls")
    if function is None or (is_own and ast.unparse(target) not in function.bound):
        return False
    return not _is_without_gradient(node, file)


def _place(target: ast.expr, file: FileEdit) -> str:
    """A target as it is written to: the source of an attribute is what it is read as (`p.grad`)."""
    if isinstance(target, ast.Attribute) and isinstance(target.value, _POSTFIX):
        return f"{_place(target.value, file)}.{target.attr}"
    is_read_so = isinstance(target, (ast.Subscript, ast.Call))
    return _source(target, file) if is_read_so else file.text.raw(target)


def _source(node: ast.expr, file: FileEdit) -> str:
    """The source of a part of a target, behind what it begins as well."""
    return file.sources_before.get(node) or file.source(node)


def _copy_into(node: ast.Call, receiver: ast.expr, use: Use, file: FileEdit) -> bool:
    """`x.copy_(y)`: by an index, which reaches the tensors of slices and casts as torch does."""
    file.keep_sources(receiver)
    if isinstance(receiver, ast.Attribute):
        if receiver.attr == "grad" and file.tree.is_statement(node):
            # A gradient may be a view that `copy_` of MindSpore 2.10 does not write to.
            place, value = _place(receiver, file), file.argument(node.args[0])
            new = f"{file.name('composites.filled')}({file.source(receiver)}, {value})"
            layout.write_statement(file, node, f"{place} = {new}")
            return True
        if receiver.attr != "data":
            return False
    code = file.argument(node.args[0])
    if isinstance(receiver, ast.Attribute):
        _write_data(receiver, node, code, "composites.overwrite", file)
    elif isinstance(receiver, ast.Subscript):
        _write_element(receiver, node, code, file)
    elif isinstance(receiver, ast.Name) and use.owner is not PARAMETER:
        _copy_into_name(node, receiver, code, file)
    elif not file.tree.is_statement(node) or not _write_view(receiver, "...", code, node, file):
        _tell_lost(receiver, node, file)
        return False
    file.uses += 1
    file.converted += 1
    return True


def _write_view(
    view: ast.expr, key: str, code: str, node: ast.expr | ast.stmt, file: FileEdit
) -> bool:
    """`x.view(-1)[0] = 5`, by the places of a view's elements; False: it is not known by them."""
    root = rearranged(view, file.views)
    if root is None or origin_of_write(view, file.views)[1] is not Reach.LOST:
        return False
    function = function_of(node, file)
    if function is not None:
        if function.is_container(root.id):
            return False
        sight = function.sight(root.id, node, is_whole=False)
        if sight.reach is Reach.LOST:
            _tell(sight, root.id, node, file)
    taken = f"lambda {root.id}: {file.source(view)}"
    call = file.name("composites.put_view")
    layout.write_statement(file, node, f"{call}({root.id}, {taken}, {key}, {code})")
    return True


def _copy_into_name(node: ast.Call, receiver: ast.Name, code: str, file: FileEdit) -> None:
    name = receiver.id
    sight = sight_of(name, node, file)
    if sight.reach is Reach.LOST:
        _tell(sight, name, node, file)
    if file.tree.is_statement(node) and not _may_be_parameter(name, node, file):
        layout.write_statement(file, node, f"{name}[...] = {_unshared(node.args[0], file)}")
    else:
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")


def _unshared(value: ast.expr, file: FileEdit) -> str:
    """What all of a tensor is overwritten with; MindSpore would make one memory of both."""
    code, (root, reach) = file.argument(value), origin_of_write(value, file.views)
    is_new = isinstance(value, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.List)) or (
        isinstance(value, ast.Call) and file.use(value.func) is not None
    )
    if is_new and root is value and reach is Reach.ALONE:
        return code
    return f"{file.name('composites.unshared')}({code})"


def owner_of_data(node: ast.expr, file: FileEdit) -> str:
    """p of `p.data`, without what `.data` was written as by then."""
    assert isinstance(node, ast.Attribute)
    return _place(node.value, file)


def _write_data(
    target: ast.Attribute, node: ast.Call, code: str, composition: str, file: FileEdit
) -> None:
    """`p.data.copy_(q.data)`: read, `.data` is a tensor of its own."""
    if isinstance(target.value, ast.Subscript):
        _put(target.value, node, code, file)
    else:
        file.replace(node, f"{file.name(composition)}({owner_of_data(target, file)}, {code})")


def _write_name(target: ast.Name, node: ast.Call, code: str, file: FileEdit) -> None:
    """Bind a tensor's new value to its name, or write it where others see the tensor."""
    name = target.id
    if (file.holds_data(target) or _is_quiet_leaf(target, file)) and not _is_shaping(node):
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")
        return
    sight = sight_of(name, node, file)
    is_statement = file.tree.is_statement(node)
    if sight.reach is not Reach.ALONE and _is_shaping(node):
        other = sight.name or "the caller's"
        level = Level.FINISH if sight.name else Level.LOOK
        file.finding(node, "in-place-shape", _SHAPE.format(name, other), level=level)
    elif sight.reach is Reach.LOST:
        _tell(sight, name, node, file)
    elif sight.reach is Reach.SHARED and is_statement and not _may_be_parameter(name, node, file):
        layout.write_statement(file, node, f"{name}[...] = {code}")
        return
    elif sight.reach is Reach.SHARED:
        file.replace(node, f"{file.name('composites.overwrite')}({name}, {code})")
        return
    if is_statement:
        layout.write_statement(file, node, f"{name} = {code}")
    elif is_read_after(target, node, file):
        file.replace(node, f"({name} := {code})")
    else:
        layout.write(file, node, code)


def _may_be_parameter(name: str, node: ast.AST, file: FileEdit) -> bool:
    """Whether a name may hold a Parameter, which `p[…] = …` would leave as a view of itself.

    An optimizer, or loading a checkpoint, can then not write to it ("Check view and inplace
    failed").
    """
    function = function_of(node, file)
    if function is None:
        return _is_bound_by_loop(name, file.tree.module)
    return function.is_from_outside(name, node)


def _is_shaping(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPING


def _write_element(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """`x[0].add_(1)` and `y = x[0].add_(1)`, of a tensor or of a list."""
    place, is_statement = _place(target, file), file.tree.is_statement(node)
    if is_taken_by_copy(target):
        if is_statement:
            message, advice = _COPY.format(place), _COPY_ADVICE.format(place)
            file.finding(node.func, "in-place-copy", message, advice, level=Level.LOOK)
        layout.write(file, node, code)
        return
    if not is_statement:
        _tell_lost(target, node, file)
        _put(target, node, code, file)
        return
    if is_data(target.value) and not _is_another(target.value, file):
        # What is written to the data of a tensor is written to the tensor.
        layout.write_statement(file, node, f"{elements(target, file)} = {code}")
        return
    if _write_view(target, "...", code, node, file):
        return
    function = function_of(node, file)
    root = origin_of_write(target, file.views)[0]
    is_copy = isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"
    _tell_lost(target, node, file)
    if isinstance(root, ast.Name) and _holds_all(root, file):
        file.replace(node, f"{file.name('composites.overwrite')}({place}, {code})")
        return
    if file.holds_data(target.value) or _is_quiet_leaf(target.value, file):
        layout.write_statement(file, node, f"{elements(target, file)} = {code}")
        return
    if function is not None and isinstance(root, ast.Name) and function.is_container(root.id):
        _tell_if_lost(root.id, node, file)
        place, code = f"{place}[...]", (_unshared(node.args[0], file) if is_copy else code)
    elif _may_hold_tensors(target, file) and (
        is_copy
        or not isinstance(target.slice, ast.Constant)
        or _is_state_of_network(target.value, file)
    ):
        _put(target, node, code, file)
        return
    if function is not None and may_be_positions(target.slice, node, file):
        _put(target, node, code, file)  # which sees whether a tensor takes a copy here
        return
    layout.write_statement(file, node, f"{place} = {code}")


def may_be_positions(index: ast.expr, at: ast.AST, file: FileEdit) -> bool:
    """Whether a part of an index may be a tensor: not what a loop counts."""
    function = function_of(at, file)
    for part in parts_of(index):
        if not isinstance(part, _UNKNOWN_INDEX):
            continue
        names = [name.id for name in ast.walk(part) if isinstance(name, ast.Name)]
        if names and (function is None or not all(map(function.counts, names))):
            return True
    return False


def _holds_all(name: ast.Name, file: FileEdit) -> bool:
    """Whether a name is a list or a dictionary of tensors' data."""
    return (file.tree.function(name), name.id) in file.held_data.containers


def elements(target: ast.Subscript, file: FileEdit) -> str:
    """`x[0]` that a Parameter can be written by."""
    held = _owner_of_element(target, file)
    return f"{file.name('composites.elements')}({held})[{_source(target.slice, file)}]"


def _owner_of_element(target: ast.Subscript, file: FileEdit) -> str:
    """x of `x[0]` and of `x.data[0]`."""
    owner = target.value
    return owner_of_data(owner, file) if is_data(owner) else _source(owner, file)


def _may_hold_tensors(target: ast.Subscript, file: FileEdit) -> bool:
    """Whether `held[key]` may be a tensor of its own that a dictionary or a list holds.

    Others may hold it as well, as a network does what its `state_dict()` gives.
    """
    key = target.slice
    if place_of(target) in file.facts.indexed or isinstance(key, (ast.Slice, ast.Tuple)):
        return False
    return not isinstance(key, ast.Constant) or isinstance(key.value, (str, int))


def _is_state_of_network(node: ast.expr, file: FileEdit) -> bool:
    """Whether an expression is a `state_dict()`, or a name that is bound to one in the file."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict"
    return isinstance(node, ast.Name) and any(
        isinstance(part.value, ast.Call)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in part.targets)
        and _is_state_of_network(part.value, file)
        for part in file.tree.of(ast.Assign)
    )


def _put(target: ast.Subscript, node: ast.Call, code: str, file: FileEdit) -> None:
    """Write into an element of a tensor, or into the tensor that something holds."""
    held, key = _owner_of_element(target, file), key_of(target.slice, file)
    file.replace(node, f"{file.name('composites.put')}({held}, {key}, {code})")


def key_of(index: ast.expr, file: FileEdit) -> str:
    """An index as an argument."""
    if not isinstance(index, ast.Tuple):
        return _key(index, file)
    parts = ", ".join(_key(part, file) for part in index.elts)
    return f"({parts}{',' if len(index.elts) == 1 else ''})"


def _key(index: ast.expr, file: FileEdit) -> str:
    """A part of an index as an argument: a slice has no signs outside of brackets."""
    if not isinstance(index, ast.Slice):
        return _source(index, file)
    ends = [index.lower, index.upper] + [index.step] * (index.step is not None)
    written = ", ".join("None" if end is None else _source(end, file) for end in ends)
    return f"slice({written})"


def _tell_lost(target: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    """Tell a change of a view that has no name, if its tensor has one; whether it was told."""
    root, reach = origin_of_write(target, file.views)
    if reach is not Reach.LOST or not isinstance(root, (ast.Name, ast.Attribute)):
        return False
    message = _LOST.format(_shown(target), _shown(root))
    file.finding(node, "in-place-view", message, _LOST_ADVICE)
    return True


def _shown(node: ast.expr) -> str:
    """An expression in a message: on one line, its end if it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _tell(sight: Sight, name: str, node: ast.AST, file: FileEdit) -> None:
    """Tell a change that a port cannot make visible where torch does."""
    function = function_of(node, file)
    if function is not None and function.is_copied_back(name, sight.name, node):
        return
    if sight.name:
        file.finding(node, "in-place-view", _LOST.format(name, sight.name), _LOST_ADVICE)
    else:
        message = _CALLERS.format(name)
        file.finding(node, "in-place-view", message, _LOST_ADVICE, level=Level.LOOK)


def _tell_if_lost(name: str, node: ast.AST, file: FileEdit) -> None:
    sight = sight_of(name, node, file)
    if sight.reach is Reach.LOST:
        _tell(sight, name, node, file)


def function_of(node: ast.AST, file: FileEdit) -> Function | None:
    """The bindings of the function around a node; None outside of one."""
    around = file.tree.function(node)
    if around is None:
        return None
    if around not in file.functions:
        held = file.held_data.values
        file.functions[around] = Function(around, file.tree, file.views, held)
    return file.functions[around]


def sight_of(name: str, node: ast.AST, file: FileEdit) -> Sight:
    """Who sees the tensor that a name holds, beside the name itself."""
    function = function_of(node, file)
    if function is None:
        shared = _is_alias(name, file.tree.module) or _is_bound_by_loop(name, file.tree.module)
        return Sight(Reach.SHARED if shared else Reach.ALONE)
    sight = function.sight(name, node)
    is_input = sight.is_argument and sight.reach is Reach.SHARED
    if is_input and _is_in_forward(node, file):
        message = _INPUT.format(name)
        file.finding(node, "in-place-input", message, level=Level.LOOK)
        return Sight(Reach.ALONE)
    return sight


def _target(receiver: ast.expr, file: FileEdit) -> ast.expr | None:
    """The name, attribute or element at the root of a chain of methods that change it."""
    node = receiver
    while isinstance(node, ast.Call) and not _is_lookup(node):
        if is_gradient(node):
            assert isinstance(node.func, ast.Attribute)
            return node.func.value
        if not isinstance(node.func, ast.Attribute):
            return _out_of(node)
        if node.func.attr not in _RETURN_SELF and not _is_changing(node.func, file):
            return _out_of(node)
        node = node.func.value
    if isinstance(node, ast.Call) and not _is_lookup(node):
        return None
    return node if isinstance(node, _POSTFIX) else None


def _is_lookup(node: ast.Call) -> bool:
    """Whether a call gives what something holds, each time the same: `getattr(net, name)`."""
    if isinstance(node.func, ast.Name):
        return node.func.id == "getattr"
    return isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKUPS


def _tell_if_unbound(node: ast.Call, use: Use, file: FileEdit) -> None:
    """Tell `torch.Tensor.add_(x, 1)`, which is written as a new value of no name."""
    entry = file.entry(use.api)
    if entry is not None and entry.hazard == _IN_PLACE and use.api.startswith(_TENSOR):
        file.finding(node, "in-place-view", _CHOSEN, _LOST_ADVICE)


def _tell_if_of_changed(target: ast.expr, node: ast.Call, file: FileEdit) -> None:
    """Tell `x.mul_(2)[0].add_(1)`: one statement cannot write to both."""
    part: ast.expr = target
    while isinstance(part, (ast.Subscript, ast.Attribute)):
        part = part.value
    if isinstance(part, ast.Call) and _is_changing(part.func, file):
        file.finding(node, "in-place-view", _CHOSEN, _LOST_ADVICE)


def _is_changing(method: ast.expr, file: FileEdit) -> bool:
    """Whether a method changes its tensor in place."""
    use = file.use(method)
    entry = file.entry(use.api) if use is not None and use.is_member else None
    return entry is not None and entry.hazard == _IN_PLACE


def _may_be_held(receiver: ast.expr, file: FileEdit) -> bool:
    """Whether something else may hold what a call gives: a function of torch makes a new tensor."""
    node = receiver
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        use = file.use(node.func)
        if use is None or not use.is_member:
            break
        node = node.func.value
    return isinstance(node, ast.Call) and file.use(node.func) is None


def is_gradient(node: ast.Call) -> bool:
    """`p.grad.detach()`, which is the gradient itself to what is written into it."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "detach":
        return False
    return isinstance(function.value, ast.Attribute) and function.value.attr == "grad"


def _out_of(node: ast.Call) -> ast.expr | None:
    """The name that `torch.f(x, out=y)` returns, and what is done to the result is done to it."""
    given = next((part.value for part in node.keywords if part.arg == "out"), None)
    return given if isinstance(given, ast.Name) else None


def is_in_chain(node: ast.Call, file: FileEdit) -> bool:
    """Whether another in-place method is called on the result."""
    parent = file.tree.parents.get(node)
    return isinstance(parent, ast.Attribute) and _is_changing(parent, file)


def _is_read_in_chain(target: ast.expr, node: ast.Call, file: FileEdit) -> bool:
    """Whether what a chain changes is read by one of its later methods: `x.mul_(2).add_(x)`."""
    shown = {ast.dump(target)}
    if isinstance(target, ast.Attribute) and target.attr == "data":
        shown.add(ast.dump(target.value))
    link: ast.AST = file.tree.parents[node]
    while isinstance(link, (ast.Attribute, ast.Call)):
        if isinstance(link, ast.Call):
            given = [*link.args, *(part.value for part in link.keywords)]
            if any(ast.dump(part) in shown for one in given for part in ast.walk(one)):
                return True
        link = file.tree.parents[link]
    return False


def _is_in_forward(node: ast.AST, file: FileEdit) -> bool:
    """Whether a node stands in the forward method of a class.

    Its inputs are seldom read by others afterwards, and MindSpore refuses to write into the inputs
    of a function that it differentiates.
    """
    function = file.tree.function(node)
    if function is None:
        return False
    is_method = isinstance(file.tree.parents.get(function), ast.ClassDef)
    return is_method and "forward" in function.name


def _is_bound_by_loop(name: str, function: ast.AST) -> bool:
    return any(
        isinstance(node, (ast.For, ast.comprehension)) and name in names_of(node.target)
        for node in ast.walk(function)
    )


def _is_alias(name: str, function: ast.AST) -> bool:
    """Whether the name was bound to something that another name holds."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            if any(isinstance(part, ast.Name) and part.id == name for part in node.targets):
                if isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)):
                    return True
    return False


def is_read_after(target: ast.Name, node: ast.Call, file: FileEdit) -> bool:
    """Whether the name is read behind the call, before the function ends or it is bound anew."""
    function = file.tree.function(node)
    if function is None:
        return False
    statement = file.tree.statement(node)
    is_bound_anew = (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and getattr(statement.targets[0], "id", "") == target.id
    )
    end = file.text.span(node)[1]
    for part in names_in(statement if is_bound_anew else function, target.id):
        if isinstance(part.ctx, ast.Load) and file.text.span(part)[0] >= end:
            return True
    return not is_bound_anew and _is_read_next_time(target, node, file)


def names_in(node: ast.AST, name: str) -> list[ast.Name]:
    """Where a tree reads or binds a name."""
    return [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name]


def _is_read_next_time(target: ast.Name, node: ast.AST, file: FileEdit) -> bool:
    """Whether a loop around the call reads the name again, from its beginning."""
    loops = [part for part in file.tree.above(node) if isinstance(part, (ast.For, ast.While))]
    function = file.tree.function(node)
    inside = [loop for loop in loops if file.tree.function(loop) is function]
    if not inside:
        return False
    names = names_in(inside[-1], target.id)
    is_bound = any(isinstance(part.ctx, ast.Store) for part in names)
    others = [part for part in names if part is not target and isinstance(part.ctx, ast.Load)]
    return bool(others) or not is_bound


def bind(target: ast.expr, node: ast.Call, code: str, file: FileEdit) -> bool:
    """Bind a call's result to the tensor that it is written to as well; False: nobody reads that.

    What else holds the tensor is told.
    """
    if isinstance(target, ast.Name):
        _write_name(target, node, code, file)
        return True
    if file.tree.is_statement(node) and isinstance(target, (ast.Attribute, ast.Subscript)):
        _tell_lost(target, node, file)
        layout.write_statement(file, node, f"{_place(target, file)} = {code}")
        return True
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        if not _tell_lost(target, node, file) and not is_taken_by_copy(target):
            held = file.source(target)
            file.replace(node, f"{file.name('composites.overwrite')}({held}, {code})")
            return True
    return False


class AugmentedAssignments:
    """`x += y`: written into the tensor where others see it."""

    kinds = (ast.AugAssign,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the new value into a shared tensor; leave the rest as it is."""
        assert isinstance(node, ast.AugAssign)
        target = node.target
        if isinstance(target, ast.Subscript):
            return _add_to_element(target, node, file)
        if isinstance(target, ast.Attribute):
            return _add_to_attribute(target, node, file)
        is_kept = file.holds_data(target) or _is_quiet_leaf(target, file)
        if is_kept and type(node.op) in SIGNS:
            value = f"{target.id} {SIGNS[type(node.op)]} {layout.operand(file, node.value)}"
            code = f"{file.name('composites.overwrite')}({target.id}, {value})"
            layout.write_statement(file, node, code)
            return True
        if not file.facts.is_tensor(target):
            return _add_to_argument(target, node, file)
        sight = sight_of(target.id, node, file)
        if sight.reach is Reach.LOST:
            _tell(sight, target.id, node, file)
        sign = SIGNS.get(type(node.op))
        if sight.reach is not Reach.SHARED or sign is None:
            return False
        code = f"{target.id} {sign} {layout.operand(file, node.value)}"
        if _may_be_parameter(target.id, node, file):
            code = f"{file.name('composites.overwrite')}({target.id}, {code})"
        else:
            code = f"{target.id}[...] = {code}"
        layout.write_statement(file, node, code)
        return True


def _add_to_attribute(target: ast.Attribute, node: ast.AugAssign, file: FileEdit) -> bool:
    """`self.h = h; self.h += 1`, which h sees in torch."""
    function, sign, place = function_of(node, file), SIGNS.get(type(node.op)), ast.unparse(target)
    if function is None or sign is None or not file.imported.torch:
        return False
    is_shared = place in function.bound and function.sight(place, node).reach is Reach.SHARED
    if not is_shared and not _is_quiet_leaf(target, file):
        return False
    call, value = file.name("composites.augmented"), file.argument(node.value)
    layout.write_statement(file, node, f'{place} = {call}("{sign}", {place}, {value})')
    return True


def _add_to_element(target: ast.Subscript, node: ast.AugAssign, file: FileEdit) -> bool:
    """`x.view(-1)[0] += 1`, `x.data[0] += 1`, and `tensors[0] += 1` of a list."""
    if _is_written_by_elements(target, node, file):
        file.replace(target, elements(target, file))
        return True
    sign = SIGNS.get(type(node.op))
    if sign is not None:
        code = f"{file.source(target)} {sign} {layout.operand(file, node.value)}"
        if _write_view(target.value, key_of(target.slice, file), code, node, file):
            return True
    if _tell_lost(target.value, node, file):
        return False
    function, sign = function_of(node, file), SIGNS.get(type(node.op))
    if sign is not None and has_inner_steps(target.slice) and _is_plain_path(target.value):
        place = file.source(target)
        code = f"{place} = {strided(target, file)} {sign} {layout.operand(file, node.value)}"
        layout.write_statement(file, node, code)
        return True
    if function is None or sign is None or not isinstance(target.value, ast.Name):
        return False
    if function.is_container(target.value.id) and file.facts.is_tensor(target):
        _tell_if_lost(target.value.id, node, file)
        place = file.source(target)
        code = f"{place}[...] = {place} {sign} {layout.operand(file, node.value)}"
        layout.write_statement(file, node, code)
        return True
    return False


def strided(node: ast.Subscript, file: FileEdit) -> str:
    """`x[:, ::2]` where MindSpore's own slices refuse a gradient."""
    owner_end, end = file.text.span(node.value)[1], file.text.span(node)[1]
    index = file.text.source(owner_end, end)
    name, numpy = file.name("composites.strided"), file.name("np.s_")
    return f"{name}({file.source(node.value)}, {numpy}{index})"


def _is_plain_path(node: ast.expr) -> bool:
    """Whether an expression is a name or a member of one, which may be read twice."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _add_to_argument(target: ast.Name, node: ast.AugAssign, file: FileEdit) -> bool:
    """`x += y` of unknown kind: a tensor that others see changes, a number is new."""
    function, sign = function_of(node, file), SIGNS.get(type(node.op))
    if function is None or sign is None or not file.imported.torch:
        return False
    parameter = function.parameters.get(target.id)
    if parameter is not None:
        is_tensor_like = parameter.annotation is None or "Tensor" in ast.dump(parameter.annotation)
        if not is_tensor_like or _has_plain_default(parameter, file.tree.function(node)):
            return False
    elif target.id not in function.bound:
        return False
    is_element = function.is_element(target.id) and not isinstance(node.value, ast.Constant)
    is_tensor_like = is_element or _is_of_torch(node.value, file)
    is_tensor_like = is_tensor_like or _is_of_module(target.id, node.value, function)
    is_tensor_like = is_tensor_like or _is_of_state(target.id, node.value, function)
    if not (is_tensor_like or _is_used_as_tensor(target.id, node, file)):
        return False  # a counter or a size, most of all
    sight = sight_of(target.id, node, file)
    if sight.reach is Reach.LOST:
        _tell(sight, target.id, node, file)
    if sight.reach is not Reach.SHARED:
        return False
    call = file.name("composites.augmented")
    value = file.argument(node.value)
    layout.write_statement(file, node, f'{target.id} = {call}("{sign}", {target.id}, {value})')
    return True


def _is_of_module(name: str, added: ast.expr, function: Function) -> bool:
    """Whether a name may hold what `self.block(x)` returned, or a slice of a tensor."""
    if isinstance(added, _PLAIN):
        return False
    waiting, known = [name], set[str]()
    while waiting:
        one = waiting.pop()
        known.add(one)
        for value in function.values_of(one):
            part = value
            while isinstance(part, ast.Subscript):
                if any(isinstance(index, ast.Slice) for index in parts_of(part.slice)):
                    return True
                part = part.value
            if isinstance(part, ast.Call) and _is_module(part.func, function):
                return True
            if isinstance(part, ast.Name) and part.id not in known:
                waiting.append(part.id)
    return False


def _is_of_state(name: str, added: ast.expr, function: Function) -> bool:
    """Whether a name may hold a tensor of a dictionary: `slow = state["slow"]`."""
    is_number = isinstance(added, (ast.Constant, *_PLAIN)) or (
        isinstance(added, ast.Call) and getattr(added.func, "id", "") in ("len", "int", "str")
    )
    if is_number or getattr(added, "id", "") in _STRIDES:
        return False
    return any(
        isinstance(value, ast.Subscript)
        and isinstance(value.slice, (ast.Constant, ast.Name))
        and not isinstance(getattr(value.slice, "value", None), int)
        for value in function.values_of(name)
    )


def _is_module(called: ast.expr, function: Function) -> bool:
    """`self.block`, `self.blocks[i]`, and `block` of a loop over them."""
    while isinstance(called, ast.Subscript):
        called = called.value
    if isinstance(called, ast.Name):
        return function.is_element(called.id)
    return isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "self"


def _is_of_torch(value: ast.expr, file: FileEdit) -> bool:
    """Whether a value is a fraction, or of something of torch's, as `p.data` is."""
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, float))
        or is_data(part)
        or file.use(part) is not None
        for part in ast.walk(value)
    )


def _is_used_as_tensor(name: str, node: ast.AST, file: FileEdit) -> bool:
    """Whether the function asks a tensor's methods of a name."""
    function = file.tree.function(node)
    if function is None:
        return False
    if function not in file.tensors:
        file.tensors[function] = _used_as_tensors(function, file)
    return name in file.tensors[function]


def _used_as_tensors(function: ast.AST, file: FileEdit) -> frozenset[str]:
    """The names of which a function asks a tensor's methods."""
    found = set()
    for part in ast.walk(function):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            use = file.use(part)
            if use is not None and use.api.startswith("torch.Tensor."):
                found.add(part.value.id)
    return frozenset(found)


def _has_plain_default(
    parameter: ast.arg, function: ast.FunctionDef | ast.AsyncFunctionDef | None
) -> bool:
    """Whether an argument has a number or a string as its default."""
    if function is None:
        return False
    found = defaults_of(function).get(parameter.arg)
    return isinstance(found, ast.Constant) and found.value is not None


class Stores:
    """`x.view(-1)[0] = …`: what is written to a view that a port's writes do not leave."""

    kinds = (ast.Assign,)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Tell it; `x.data[0] = …` is written to x."""
        assert isinstance(node, ast.Assign)
        for target in node.targets:
            several = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            for part in several:
                if isinstance(part, ast.Subscript):
                    _store(part, node, file)
                    if part is target and is_ellipsis(part.slice):
                        code = _unshared(node.value, file)
                        if code != file.source(node.value):
                            file.replace(node.value, code)
        return False


def _is_written_by_elements(
    target: ast.Subscript, node: ast.Assign | ast.AugAssign, file: FileEdit
) -> bool:
    """Whether an element may be a Parameter's: of `.data`, or of a weight where nothing learns."""
    owner = target.value
    if is_data(owner):
        return not _is_another(owner, file)
    if file.holds_data(owner) or _is_quiet_leaf(owner, file):
        return True
    root = origin_of_write(owner, file.views)[0]
    if isinstance(owner, ast.Subscript) and isinstance(root, ast.Name) and _holds_all(root, file):
        return True
    if file.facts.values.get(place_of(owner)) is PARAMETER:
        return True
    is_weight = isinstance(owner, ast.Attribute) and owner.attr in ("weight", "bias")
    return is_weight and _is_without_gradient(node, file)


def _is_another(node: ast.AST, file: FileEdit) -> bool:
    """Whether `x.data` is known to be of something that is no tensor."""
    use = file.use(node)
    return use is not None and use.api != "torch.Tensor.data"


def _is_without_gradient(node: ast.AST, file: FileEdit) -> bool:
    """Whether a node stands in a block or a function that records no gradients."""
    for part in file.tree.above(node):
        switches: list[ast.expr] = []
        if isinstance(part, (ast.With, ast.AsyncWith)):
            switches = [item.context_expr for item in part.items]
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            switches = list(part.decorator_list)
        for switch in switches:
            named = switch.func if isinstance(switch, ast.Call) else switch
            if file.named.get(named, "") in ("torch.no_grad", "torch.inference_mode"):
                return True
    return False


def _is_quiet_leaf(node: ast.expr, file: FileEdit) -> bool:
    """Whether a leaf stands where no gradients are recorded, which is where torch changes one."""
    return file.is_leaf(node) and _is_without_gradient(node, file)


def _store(target: ast.Subscript, node: ast.Assign, file: FileEdit) -> None:
    view = target.value
    if _is_written_by_elements(target, node, file):
        file.replace(target, elements(target, file))
        return
    if is_data(view):  # of a batch or another object
        return
    if target is node.targets[0] and len(node.targets) == 1:
        code = file.argument(node.value)
        if _write_view(view, key_of(target.slice, file), code, node, file):
            return
    if not _tell_lost(view, node, file) and isinstance(view, ast.Name):
        function = function_of(node, file)
        if function is None or function.is_container(view.id):
            return
        values = function.values_of(view.id)
        if values and all(map(is_laid_out, values)):
            return  # `contiguous` copies, or shares the memory, as in torch (`taken`)
        sight = function.sight(view.id, node, is_whole=False)
        if sight.reach is Reach.LOST and sight.name:
            _tell(sight, view.id, node, file)

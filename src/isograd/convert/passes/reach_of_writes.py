"""Findings about writes that do not reach every alias of a tensor."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache

from isograd.convert import layout
from isograd.convert.aliases import Scope
from isograd.convert.analysis.given_arguments import Function, given_for
from isograd.convert.file import FileEdit
from isograd.convert.held_results import reach_of_held
from isograd.convert.model import Level
from isograd.convert.origins import Reach, Sight, origin_of_write, rearranged
from isograd.scan.values import Api, ClassInfo, Foreign, Value
from isograd.static_graph.scope import below

LOST = "{0} and {1} share memory in torch; this change does not reach {1} in MindSpore"
#: What binds names of its own inside an expression.
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOST_ADVICE = "Write to the tensor itself: x[…] = …, or bind the new values and use them."
_OF_HELD = (
    "{0} is a view of what its object holds in torch; this change does not reach that in MindSpore"
)
_CALLERS = "{0} is a view of an argument, and this change does not reach the caller's tensor"
_INPUT = "{0} changes its input {1}, in torch for its caller as well; the port does not"
_LONGEST_SHOWN = 60
#: What functions with a gradient of their own are derived from; the scan names it by either path.
_FUNCTIONS = "torch.autograd"


def write_view(
    view: ast.expr, key: str, code: str, node: ast.expr | ast.stmt, file: FileEdit
) -> bool:
    """`x.view(-1)[0] = 5`, by the places of a view's elements; False: it is not known by them."""
    root = rearranged(view, file.views)
    if root is None or origin_of_write(view, file.views)[1] is not Reach.LOST:
        return False
    scope = scope_of(node, file)
    if scope.is_container(root.id):
        return False
    sight = scope.sight(root.id, node)
    if sight.reach is Reach.LOST:
        tell(sight, root.id, node, file)
    taken = f"lambda {root.id}: {file.source(view)}"
    call = file.name("composites.put_view")
    layout.write_statement(file, node, f"{call}({root.id}, {taken}, {key}, {code})")
    return True


def tell_lost(target: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    """Report a change of a view that has no name, if its tensor has one; whether it did."""
    root, reach = origin_of_write(target, file.views)
    if tell_view_of_held(root, node, file):
        return True
    if reach is not Reach.LOST or not isinstance(root, (ast.Name, ast.Attribute)):
        return False
    message = LOST.format(_shown(target), _shown(root))
    file.finding(node, "in-place-view", message, LOST_ADVICE)
    return True


def tell_view_of_held(target: ast.expr, node: ast.AST, file: FileEdit) -> bool:
    """Report a change of a property, or of a result, that is a view of what an object holds."""
    if reach_of_held(target, file.tree, file.views) is not Reach.LOST:
        return False
    file.finding(node, "in-place-view", _OF_HELD.format(_shown(target)), LOST_ADVICE)
    return True


def _shown(node: ast.expr) -> str:
    """An expression in a message: on one line, its end if it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def tell(sight: Sight, name: str, node: ast.AST, file: FileEdit) -> None:
    """Report a change that a port cannot make visible where torch does."""
    if scope_of(node, file).is_copied_back(name, sight.name, node):
        return
    if sight.name:
        file.finding(node, "in-place-view", LOST.format(name, sight.name), LOST_ADVICE)
    else:
        message = _CALLERS.format(name)
        file.finding(node, "in-place-view", message, LOST_ADVICE, level=Level.LOOK)


def tell_if_lost(name: str, node: ast.AST, file: FileEdit, *, is_whole: bool = True) -> None:
    """Report a change that does not reach every name of a tensor."""
    if is_whole:
        sight = sight_of(name, node, file)
    else:
        sight = scope_of(node, file).sight(name, node, is_whole=False)
    if sight.reach is Reach.LOST:
        tell(sight, name, node, file)


def scope_of(node: ast.AST, file: FileEdit) -> Scope:
    """The bindings of the function around a node, or of the module."""
    around = file.tree.scope(node)
    if around not in file.scopes:
        held = file.data_aliases.values
        file.scopes[around] = Scope(around, file.tree, file.views, held)
    return file.scopes[around]


def all_values_of(node: ast.Name, file: FileEdit) -> list[ast.expr]:
    """All that binds a name; none where anything but assignments of the file may do so."""
    scope = scope_of(node, file)
    if node.id in scope.parameters:
        return []
    values = scope.values_of(node.id) or file.tree.values_of_module.get(node.id, [])
    return values if len(values) == file.tree.times_bound[node.id] else []


def own_values_of(node: ast.Name, file: FileEdit) -> list[ast.expr]:
    """All that binds a name of a function; none where anything but its assignments may do so."""
    scope = scope_of(node, file)
    values = scope.values_of(node.id)
    is_bound_by_these = len(values) == times_bound(node, file)
    return values if is_bound_by_these and node.id not in scope.parameters else []


def times_bound(name: ast.Name, file: FileEdit) -> int:
    """How often the scope binds a name, by loops and tuples too."""
    scope = file.tree.scope(name)
    return sum(
        file.tree.scope(part) is scope
        for part in file.tree.binding
        if getattr(part, "id", getattr(part, "name", "")) == name.id
    )


def sight_of(name: str, node: ast.AST, file: FileEdit) -> Sight:
    """Who sees the tensor that a name holds, beside the name itself."""
    scope = scope_of(node, file)
    outer = _scope_of_free(name, node, file)
    if outer is not None:
        return outer.sight_at_any_time(name)
    sight = scope.sight(name, node)
    is_input = sight.is_argument and sight.reach is Reach.SHARED
    function = file.tree.function(node)
    if is_input and function is not None and is_in_forward(node, file):
        if is_read_by_callers(sight.argument, function, file):
            return sight
        message = _INPUT.format(function.name, sight.argument)
        file.finding(node, "in-place-input", message, level=Level.LOOK)
        return Sight(Reach.ALONE)
    if sight.reach is Reach.ALONE and not can_be_bound(name, node, file):
        return Sight(Reach.SHARED)
    return sight


def is_read_by_callers(name: str, function: Function, file: FileEdit) -> bool:
    """Whether a method that forward calls is given a tensor that others read behind the call.

    That of forward itself is an input of the network, which MindSpore refuses to write into.
    """
    waiting, known = [(name, function)], set[tuple[str, Function]]()
    while waiting:
        pair = waiting.pop()
        if pair in known or pair[1].name == "forward":
            continue
        known.add(pair)
        for call, given in given_for(*pair, file.tree):
            sight = _sight_of_given(given, call, file)
            caller = file.tree.function(call)
            if sight.reach in (Reach.ALONE, Reach.LOST):
                continue
            if not sight.argument or caller is None or not is_in_forward(call, file):
                return True
            waiting.append((sight.argument, caller))
    return False


def _sight_of_given(given: ast.expr, call: ast.Call, file: FileEdit) -> Sight:
    """Who sees what a call is given behind the call, where a write of the method's reaches it."""
    root, reach = origin_of_write(given, file.views)
    if reach is Reach.LOST:
        return Sight(Reach.ALONE)
    if not isinstance(root, ast.Name):
        return Sight(Reach.SHARED if isinstance(root, ast.Attribute) else Reach.ALONE)
    scope = scope_of(call, file)
    if scope.is_read_behind(root.id, call):
        return Sight(Reach.SHARED, root.id)
    return scope.sight(root.id, call)


def _scope_of_free(name: str, node: ast.AST, file: FileEdit) -> Scope | None:
    """The scope around that binds a name which a function or a lambda at a node only reads."""
    inside = _lambda_around(node, file) is not None
    scope = scope_of(node, file)
    while True:
        if name in scope.bound or name in scope.parameters:
            return scope if inside else None
        if isinstance(scope.node, ast.Module):
            return None
        scope, inside = scope_of(scope.node, file), True


def can_be_bound(name: str, node: ast.AST, file: FileEdit) -> bool:
    """Whether a name that is bound at a node is the scope's: not in a class body or a generator."""
    for part in file.tree.above(node):
        if isinstance(part, ast.ClassDef):
            return False
        if isinstance(part, _COMPREHENSIONS):
            return False  # it may keep the tensor of each round
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
    return _lambda_around(node, file) is None


def _lambda_around(node: ast.AST, file: FileEdit) -> ast.Lambda | None:
    """The lambda in whose body a node stands."""
    for part in file.tree.above(node):
        if isinstance(part, ast.Lambda):
            return part
        if isinstance(part, ast.stmt):
            break
    return None


def is_in_forward(node: ast.AST, file: FileEdit) -> bool:
    """Whether a node stands in the forward method of a class, or in one that it calls.

    Its inputs are seldom read by others afterwards, and MindSpore refuses to write into the inputs
    of a function that it differentiates.
    """
    function = file.tree.function(node)
    if function is None:
        return False
    owner = file.tree.parents.get(function)
    if not isinstance(owner, ast.ClassDef) or function.name not in called_by_forward(owner):
        return False
    info = file.class_info(owner)
    return info is None or _may_be_run_by_network(info, file)


def may_be_compiled(node: ast.AST, file: FileEdit) -> bool:
    """Whether a node may run in a graph: in forward, or in what a compiled step calls."""
    is_in_step = file.settings.compiles_steps and file.tree.function(node) is not None
    return is_in_step or is_in_forward(node, file)


def _may_be_run_by_network(info: ClassInfo, file: FileEdit) -> bool:
    """Whether a class may be a module, be mixed into one or compute for one.

    An optimizer or a data set is known to be none of them.
    """
    if info.is_module or info in file.settings.mixed or info.root.startswith(_FUNCTIONS):
        return True
    if "forward" in info.methods and not any(isinstance(base, Api) for base in info.bases):
        return True
    return any(
        _may_be_run_by_network(base, file)
        if isinstance(base, ClassInfo)
        else not (isinstance(base, Api) or _is_of_python(base))
        for base in info.bases
    )


def _is_of_python(base: Value) -> bool:
    return isinstance(base, Foreign) and base.name.partition(".")[0] in sys.stdlib_module_names


@lru_cache(maxsize=512)  # asked for every write of a class
def called_by_forward(owner: ast.ClassDef) -> frozenset[str]:
    """The methods of a class that run in its forward; all where that is another class's."""
    methods = {
        part.name: part
        for part in owner.body
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    if "forward" not in methods:
        return frozenset(set(methods) - {"__init__"} if owner.bases else ())
    found, waiting = {"forward"}, ["forward"]
    while waiting:
        method = methods[waiting.pop()]
        own = next((part.arg for part in method.args.args), "")
        for part in below(method):
            if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") == own:
                if part.attr in methods and part.attr not in found:
                    found.add(part.attr)
                    waiting.append(part.attr)
    return frozenset(found)

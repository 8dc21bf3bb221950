"""What a compiled step would take for a constant, and the program changes between two steps.

The compiler reads an attribute of a network, or a name of the module, when it compiles the step:
`net.tau = net.tau * 0.9` behind the step would change nothing.  Parameters are inputs of the graph.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from isograd.convert.names import is_torch
from isograd.convert.training.frozen_in_loops import frozen_in_loops
from isograd.convert.training.model import StepPlan
from isograd.convert.training.paths import calls_in, path_of
from isograd.convert.tree import pairs_of
from isograd.scan.names_in_place import changes_in_place
from isograd.static_graph.scope import FileScope

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Loop = (ast.For, ast.AsyncFor, ast.While)
#: Attributes of tensors; what layers hold as Parameters, which are inputs of the graph.
_OF_TENSORS = frozenset("data grad requires_grad".split())
_OF_LAYERS = frozenset("weight bias running_mean running_var num_batches_tracked".split())
_Project = TypeVar("_Project", bound="Project")
_OF_BUFFERS = frozenset(("buffers", "named_buffers"))
_OF_NETWORKS = frozenset(("ModuleList", "ModuleDict"))
_SETS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


@dataclass
class Project:
    """All functions of a project by their names, and the classes around them.

    parents: the node around each.  parameters: attributes that hold a Parameter somewhere.
    networks: attributes that hold a list or dictionary of networks somewhere.
    libraries: of each file the names of imported modules, and of what is torch's.  defined: of
    each file the functions and classes at its top.
    """

    functions: dict[str, list[_Function]] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    networks: set[str] = field(default_factory=set)
    calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    files: dict[ast.AST, str] = field(default_factory=dict)
    libraries: dict[ast.AST, set[str]] = field(default_factory=dict)
    defined: dict[ast.AST, dict[str, ast.AST]] = field(default_factory=dict)
    scopes: dict[ast.AST, FileScope] = field(default_factory=dict)

    @classmethod
    def of(cls: type[_Project], trees: Iterable[tuple[str, ast.Module]]) -> _Project:
        """Read the trees of a project."""
        project = cls()
        for name, tree in trees:
            project.files[tree] = name
            kinds = (*_FUNCTIONS, ast.ClassDef)
            project.defined[tree] = {n.name: n for n in tree.body if isinstance(n, kinds)}
            libraries = project.libraries[tree] = set()
            for node in ast.walk(tree):
                libraries |= _libraries_of(node)
                for child in ast.iter_child_nodes(node):
                    project.parents[child] = node
                project._note(node)
        return project

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, _Function):
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Call):
            self.calls.setdefault(_called(node), []).append(node)
            if _called(node) == "register_parameter" and node.args:
                self.parameters.add(str(getattr(node.args[0], "value", "")))
        elif isinstance(node, ast.Assign):
            attributes = {getattr(target, "attr", "") for target in node.targets}
            self.parameters |= attributes if _makes_parameter(node.value) else set()
            self.networks |= attributes if _called(node.value) in _OF_NETWORKS else set()

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def file(self, node: ast.AST) -> str:
        """The name of a node's file."""
        *_, module = self.above(node)
        return self.files[module]

    def qualified(self, node: ast.AST) -> str:
        """The dotted name that an expression means by its file's imports; empty for none."""
        *_, module = self.above(node)
        assert isinstance(module, ast.Module)
        if module not in self.scopes:
            self.scopes[module] = FileScope(module)
        return self.scopes[module].qualified(node)

    def is_of_library(self, node: ast.AST) -> bool:
        """Whether a path begins with the name of a module that its file imports."""
        *_, module = (node, *self.above(node))
        return path_of(node).partition(".")[0] in self.libraries.get(module, ())

    def means(self, node: ast.AST, function: _Function) -> bool:
        """Whether what has a function's name may be it, and not another one of its own file."""
        if not isinstance(node, ast.Name) or len(self.functions.get(function.name, ())) < 2:
            return True
        *_, module = (node, *self.above(node))
        own = self.defined.get(module, {}).get(node.id)
        return own is None or own is function or self.owner(function) is not None

    def is_at_top(self, node: ast.AST) -> bool:
        """Whether a statement stands in no other one."""
        return isinstance(self.parents[node], ast.Module)

    def function(self, node: ast.AST) -> _Function | None:
        """The function around a node."""
        return next((part for part in self.above(node) if isinstance(part, _Function)), None)

    def owner(self, function: _Function) -> ast.ClassDef | None:
        """The class of a method."""
        parent = self.parents[function]
        return parent if isinstance(parent, ast.ClassDef) else None

    def reached(
        self, starts: Iterable[ast.AST], without: Collection[ast.AST] = ()
    ) -> set[_Function]:
        """The functions that nodes call, directly or not, by their names; no constructors.

        without: nodes that are not looked at.
        """
        found: set[_Function] = set()
        waiting = list(starts)
        while waiting:
            for call in calls_in([waiting.pop()]):
                if call in without:
                    continue
                for function in self.functions.get(_called(call), ()):
                    if function.name == "__init__" or not self.means(call.func, function):
                        continue
                    if function not in found:
                        found.add(function)
                        waiting.append(function)
        return found


@dataclass
class _Seen:
    """What compiled steps read: attributes of `self`, names of modules, paths that begin with one.

    settings: what torch's layers and losses read of themselves.  objects: the paths of networks and
    losses.  classes: those of the methods that are compiled.
    """

    attributes: set[str]
    settings: Collection[str]
    names: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    classes: set[ast.ClassDef | None] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)

    def add_free(self, function: _Function) -> None:
        """Add what a function reads and does not bind."""
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        bound |= {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
        self.names |= {node.id for node in names} - bound
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and path_of(node).partition(".")[0] in self.names:
                self.paths.add(path_of(node))


def late_changes(
    trees: Iterable[tuple[str, ast.Module]], plans: Iterable[StepPlan], settings: Collection[str]
) -> Iterator[tuple[str, ast.AST, str]]:
    """The file, the statement and the reason for each change that compiled steps would not see.

    settings: as `Knowledge.layer_arguments`.
    """
    project, plans = Project.of(trees), list(plans)
    computed, seen = _seen_by(plans, project, settings)
    for function in computed:
        for one in _chosen_in(function, project.networks):
            what = f"{ast.unparse(one)} is chosen by an argument, and learns in some rounds alone"
            yield project.file(one), one, what
    roots = set().union(*(_loops_around(plan, project) for plan in plans))
    late = project.reached(roots) - computed
    for region in (*roots, *late):
        for node in ast.walk(region):
            for target in _changed(node):
                if name := _stale(target, seen, project):
                    yield project.file(node), node, f"{name} changes between steps"
            if name := _changed_buffers(node, seen, project):
                yield project.file(node), node, f"{name} changes between steps"
    for node in frozen_in_loops(roots, computed, project):
        yield project.file(node), node, "what learns changes between steps"


def changes_anywhere(
    trees: Iterable[tuple[str, ast.Module]], plans: Iterable[StepPlan], settings: Collection[str]
) -> bool:
    """Whether anything changes what compiled networks and losses read: no constructors.

    Nor does a module that sets a name of its own once, at its top.
    """
    trees = list(trees)
    project = Project.of(trees)
    seen = _seen_by(list(plans), project, settings)[1]
    changed = [
        (node, target)
        for _, tree in trees
        for node in ast.walk(tree)
        if getattr(project.function(node), "name", "") != "__init__"
        for target in _changed(node)
    ]
    if any(_changed_buffers(node, seen, project) for _, tree in trees for node in ast.walk(tree)):
        return True
    count = Counter(target.id for _, target in changed if isinstance(target, ast.Name))
    return any(
        _stale(target, seen, project)
        for node, target in changed
        if count[getattr(target, "id", "")] != 1 or not project.is_at_top(node)
    )


def _seen_by(
    plans: list[StepPlan], project: Project, settings: Collection[str]
) -> tuple[set[_Function], _Seen]:
    """The functions that steps and networks compute, and what these read."""
    forwards = project.functions.get("forward", [])
    parts = [statement for plan in plans for statement in plan.computed]
    reported = {
        n for plan in plans for one in plan.names.reported for s in one.effects for n in ast.walk(s)
    }
    computed = {*forwards, *project.reached([*forwards, *parts], reported)}
    read = _attributes_read(computed, reported) - project.parameters - _OF_TENSORS - _OF_LAYERS
    seen = _Seen(read, settings)
    for function in computed:
        seen.add_free(function)
    seen.objects |= {path for plan in plans for path in plan.names.objects}
    seen.handed = {node.attr for plan in plans for node in plan.names.settings}
    seen.classes |= {project.owner(function) for function in computed}
    return computed, seen


def _chosen_in(function: _Function, networks: set[str]) -> Iterator[ast.Subscript]:
    """The elements of lists of networks that a function's arguments choose: `self.heads[task]`.

    torch gives no gradients to the others, and its optimizer does not step them.
    """
    given = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") in networks:
            if any(getattr(part, "id", "") in given for part in ast.walk(node.slice)):
                yield node


def _called(call: ast.AST) -> str:
    """The last name of what is called."""
    function = getattr(call, "func", None)
    return getattr(function, "attr", "") or getattr(function, "id", "")


def _libraries_of(node: ast.AST) -> set[str]:
    """The names that an import gives to modules, or to what is torch's."""
    if isinstance(node, ast.Import) or (
        isinstance(node, ast.ImportFrom) and is_torch(node.module or "")
    ):
        return {one.asname or one.name.partition(".")[0] for one in node.names}
    return set()


def _makes_parameter(value: ast.expr) -> bool:
    """Whether a value may be a Parameter: `nn.Parameter(w) if learns else None`."""
    parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    return any(_called(part) == "Parameter" for part in parts)


def _attributes_read(functions: Iterable[_Function], without: Collection[ast.AST]) -> set[str]:
    """The attributes that methods read of their object, but for methods of its own."""
    return {
        node.attr
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and node not in without
        and isinstance(node.ctx, ast.Load)
        and getattr(node.value, "id", "") == "self"
    }


def _loops_around(plan: StepPlan, project: Project) -> set[ast.AST]:
    """The loops of a project in which the step is taken again and again."""
    found: set[ast.AST] = set()
    waiting: list[ast.AST] = [plan.update]
    seen: set[ast.AST] = set()
    while waiting:
        node = waiting.pop()
        around = [part for part in project.above(node) if isinstance(part, _Loop)]
        function = project.function(node)
        inner = set(ast.walk(function)) if function is not None else None
        found.update(part for part in around if inner is None or part in inner)
        if function is not None and function not in seen:
            seen.add(function)
            calls = project.calls.get(function.name, ())
            waiting += [call for call in calls if project.means(call.func, function)]
    return found


def _changed(node: ast.AST) -> Iterator[ast.expr]:
    """The names, attributes and elements that a statement sets or changes in place."""
    if isinstance(node, _SETS):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if changes_in_place(node.func.attr):
            yield node.func.value
    elif isinstance(node, ast.Call) and _called(node) == "setattr" and len(node.args) == 3:
        name = getattr(node.args[1], "value", "")
        if isinstance(name, str) and name:
            yield ast.copy_location(ast.Attribute(node.args[0], name, ast.Store()), node)


def _changed_buffers(node: ast.AST, seen: _Seen, project: Project) -> str:
    """`for b in net.buffers(): b.mul_(0.5)` of a network: buffers of its own are constants."""
    if not isinstance(node, ast.For) or "register_buffer" not in project.calls:
        return ""
    changed = {
        path_of(target).partition(".")[0]
        for part in node.body
        for one in ast.walk(part)
        for target in _changed(one)
    }
    for target, value in pairs_of(node.target, _one_of(node.iter)):
        names = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
        method = getattr(value, "func", value)
        owner = path_of(method.value) if isinstance(method, ast.Attribute) else ""
        if _called(value) in _OF_BUFFERS and owner in seen.objects and names & changed:
            return f"a buffer of {owner}"
    return ""


def _one_of(iterated: ast.expr) -> ast.expr:
    """What a loop goes through: of several at once a tuple of them."""
    if _called(iterated) == "zip" and isinstance(iterated, ast.Call):
        return ast.Tuple(iterated.args, ast.Load())
    return iterated


def _stale(target: ast.expr, seen: _Seen, project: Project) -> str:
    """The name under which steps read what is changed; empty where none does."""
    while isinstance(target, (ast.Subscript, ast.Starred)) or (
        isinstance(target, ast.Attribute) and target.attr == "data"
    ):
        target = target.value
    if isinstance(target, ast.Name):
        return target.id if target.id in seen.names and _is_of_module(target, project) else ""
    if not isinstance(target, ast.Attribute) or target.attr in _OF_TENSORS | project.parameters:
        return ""
    path, owner = path_of(target), path_of(target.value)
    is_set = isinstance(target.ctx, ast.Store)
    if not is_set and (target.attr in _OF_LAYERS or project.is_of_library(target)):
        return ""  # `nn.utils.clip_grad_norm_(…)` is a function of a module
    is_part = any(f"{owner}.".startswith(f"{one}.") for one in seen.objects)
    if (
        path in seen.paths
        or target.attr in seen.handed
        or (is_part and target.attr in seen.settings)
    ):
        return path
    if target.attr not in seen.attributes:
        return ""
    if owner != "self":
        return ast.unparse(target)
    function = project.function(target)
    of = None if function is None else project.owner(function)
    return path if of in seen.classes else ""


def _is_of_module(name: ast.Name, project: Project) -> bool:
    """Whether a name that is set is the module's, also by `global`."""
    function = project.function(name)
    return function is None or any(
        isinstance(node, ast.Global) and name.id in node.names for node in ast.walk(function)
    )

"""What takes gradients of its own beside compiled steps, and is recorded as it runs.

def attack(net, x, y):                 # eager: it learns nothing and reads the gradient of x
    x.requires_grad_()
    criterion(net(x), y).backward()
    return (x + 0.1 * x.grad.sign()).detach()

for x, y in batches:                   # a compiled step
    ...

Gradients that one leaves behind must not reach the other: a region that reads gradients of
parameters zeroes them first, and steps begin with none.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from isograd.convert.training.callers import Callers
from isograd.convert.training.flows import flows_into
from isograd.convert.training.index import Index, last_name
from isograd.convert.training.model import Form, StepPlan
from isograd.convert.training.paths import calls_in, method_of, path_of
from isograd.static_graph.find import compiled_functions
from isograd.static_graph.scope import FileScope

#: What asks for recorded gradients where it stands, and nowhere else.
LOCAL = (
    "torch.autograd.grad", "torch.autograd.backward", "torch.autograd.functional.",
    "torch.autograd.Variable", "torch.Tensor.grad", "torch.Tensor.retain_grad", "torch.func.",
    "torch.enable_grad", "torch.nn.utils.get_total_norm",
)  # fmt: skip
#: What is one for a whole program: recorded and compiled gradients do not stand beside it.
_OF_ALL = (
    "torch.amp.GradScaler", "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler",
    "torch.nn.parallel.DistributedDataParallel", "torch.autograd.Function",
    "torch.autograd.function.",
)  # fmt: skip
_MAY_BE_LEFT = "it reads gradients that another training may have left"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LISTS = frozenset(("parameters", "named_parameters", "param_groups", "modules", "named_modules"))


#: A function, or neighbouring statements as the body of a module.
Region = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass
class Regions:
    """Statements and functions of a project that stay eager beside its compiled steps."""

    index: Index = field(default_factory=Index)
    nodes: list[Region] = field(default_factory=list)
    _inside: dict[ast.AST, Region] = field(default_factory=dict)

    def around(self, node: ast.AST | None) -> Region | None:
        """The region in which a node stands; None for any other."""
        return None if node is None else self._inside.get(node)

    def add(self, region: Region) -> None:
        """One more, with all that stands in it."""
        if not any(statement in self._inside for statement in region.body):
            self.nodes.append(region)
            self._inside |= dict.fromkeys(ast.walk(region), region)


def regions_of(index: Index, plans: Collection[StepPlan], places: Iterable[ast.AST]) -> Regions:
    """The regions around places that need recorded gradients; plans: all compiled steps.

    What a compiled step or a network computes is none, nor is what stands in a step's loop.
    """
    found = Regions(index)
    if not all(map(_begins_without_gradients, plans)):
        return found
    loops = {plan.loop for plan in plans}
    computed = computed_functions(index, plans)
    for place in places:
        around = _around(place, loops, index)
        if around is not None and computed.isdisjoint([around, *index.above(place)]):
            found.add(around)
    return found


def _begins_without_gradients(plan: StepPlan) -> bool:
    """Whether torch's step would zero what a region has left, before its own `backward()`."""
    is_fused = plan.form is Form.FUSED and plan.descent is None and not plan.scaler
    return is_fused and not plan.zeroes_late


def steps_around(
    places: Iterable[ast.AST], plans: Iterable[StepPlan], index: Index
) -> list[StepPlan]:
    """The steps in whose loops one of these places stands, or one of such a step's."""
    left, found = list(plans), list[StepPlan]()
    waiting = list(places)
    while waiting:
        above = set(index.above(waiting.pop()))
        more = [plan for plan in left if plan.loop in above]
        left = [plan for plan in left if plan not in more]
        waiting += [plan.call for plan in more]
        found += more
    return found


def problems(
    regions: Regions, plans: Collection[StepPlan], apis: Collection[str]
) -> Iterator[tuple[ast.AST, str]]:
    """Why regions cannot stand beside compiled steps, each at its place."""
    if not regions.nodes:
        return
    first = regions.nodes[0]
    of_all = sorted(api for api in apis if api.startswith(_OF_ALL))
    if of_all:
        yield first.body[0], f"{of_all[0]} is used by compiled and by eager training"
    for node in flows_into(plans, regions.nodes, regions.index):
        yield node, "what a compiled step has computed may be differentiated once more"
    yield from _stray_steps(regions, plans)
    loops = {plan.loop for plan in plans}
    computed = {node for plan in plans for part in plan.computed for node in ast.walk(part)}
    callers = Callers(regions.index)
    for region in regions.nodes:
        if isinstance(region, _FUNCTIONS):
            for call in callers.calls(region):
                if call in computed:
                    yield call, f"a step may call {region.name}, which takes gradients"
        unclear = list(_unclear_gradients(region, _trains(region, loops, regions.index)))
        is_behind = bool(unclear) and _is_called_behind_backward(region, regions, callers)
        yield from (one for one in unclear if not (is_behind and one[1] == _MAY_BE_LEFT))


def _stray_steps(regions: Regions, plans: Iterable[StepPlan]) -> Iterator[tuple[ast.AST, str]]:
    """Steps of optimizers, which something zeroes, apart from regions and compiled steps."""
    index = regions.index
    zeroed = {last_name(_receiver(call)) for call in index.calls.get("zero_grad", ())}
    loops = {plan.loop for plan in plans}
    for call in index.calls.get("step", ()):
        is_optimizer = not call.args and last_name(_receiver(call)) in zeroed
        is_known = regions.around(call) is not None or not loops.isdisjoint(index.above(call))
        if is_optimizer and not is_known:
            yield call, "its gradients are taken elsewhere"


def _receiver(call: ast.Call) -> ast.AST:
    return call.func.value if isinstance(call.func, ast.Attribute) else call.func


def _of_objects(region: ast.AST, index: Index) -> set[ast.AST]:
    """The calls of methods, of which the project has a plain function of this name alone."""
    return {
        node
        for node in ast.walk(region)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if not index.is_of_library(node.func)
        if all(index.owner(one) is None for one in index.functions.get(node.func.attr, ()))
    }


def computed_functions(index: Index, plans: Iterable[StepPlan]) -> set[_Function]:
    """The functions that compiled steps and networks run, by their names."""
    modules = [module for module in index.files if isinstance(module, ast.Module)]
    networks = [one.node for module in modules for one in compiled_functions(FileScope(module))]
    parts: list[ast.AST] = [part for plan in plans for part in (*plan.computed, plan.loss)]
    elsewhere = [function for plan in plans for _, function in plan.names.elsewhere]
    return {*networks, *elsewhere, *index.reached([*networks, *elsewhere, *parts])}


def _around(place: ast.AST, loops: Collection[ast.AST], index: Index) -> Region | None:
    """The function around a place, or its statement with its neighbours, without compiled steps.

    None within the loop of a step.
    """
    above = [place, *index.above(place)]
    if any(node in loops for node in above):
        return None
    found: ast.AST | None = None
    for node in above:
        if isinstance(node, (ast.ClassDef, ast.Module)) or _holds(node, loops):
            break
        if isinstance(node, ast.stmt):
            found = node
    if found is None or isinstance(found, _FUNCTIONS):
        return found
    return ast.Module(_neighbours(found, loops, index), [])


def _neighbours(statement: ast.AST, loops: Collection[ast.AST], index: Index) -> list[ast.stmt]:
    """The statements beside one, up to the next that holds a compiled step, without definitions."""
    blocks = ast.iter_fields(index.parents[statement])
    block = next(own for _, own in blocks if isinstance(own, list) and statement in own)
    at = block.index(statement)

    def is_apart(one: ast.stmt) -> bool:
        return isinstance(one, _DEFINITIONS) or not (
            _holds(one, loops) or _trains(one, loops, index)
        )

    before = itertools.takewhile(is_apart, reversed(block[:at]))
    behind = itertools.takewhile(is_apart, block[at + 1 :])
    several = (*reversed([*before]), block[at], *behind)
    return [one for one in several if not isinstance(one, _DEFINITIONS)]


def _trains(region: ast.AST, loops: Collection[ast.AST], index: Index) -> bool:
    """Whether what a region calls takes compiled steps."""
    reached = index.reached([region], _of_objects(region, index))
    return any(_holds(function, loops) for function in reached)


def _holds(node: ast.AST, loops: Collection[ast.AST]) -> bool:
    return any(part in loops for part in ast.walk(node))


# ---- gradients that are left behind


def _unclear_gradients(region: Region, trains: bool) -> Iterator[tuple[ast.AST, str]]:
    """Gradients that a region reads, or steps with, and that may not be its own.

    trains: whether it calls what takes compiled steps.
    """
    leaves = _leaves(region)
    made = _of_new_values(region, leaves)
    written = {node.lineno for node in ast.walk(region) if _is_written_gradient(node)}  # type: ignore[attr-defined] # an attribute
    taken = [*written, *(c.lineno for c in _calls(region, "backward"))]
    zeroed = {
        method_of(call)[0]
        for call in _calls(region, "zero_grad")
        if taken and call.lineno < min(taken) and not trains
    }
    for node in ast.walk(region):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            is_own = path_of(node.value) in leaves or not isinstance(node.ctx, ast.Load)
            if not (is_own or zeroed or _is_module(node)):
                yield node, _MAY_BE_LEFT
        elif isinstance(node, ast.Attribute) and node.attr in ("requires_grad_", "requires_grad"):
            is_written = node.attr == "requires_grad_" or not isinstance(node.ctx, ast.Load)
            if is_written and path_of(node.value) not in leaves and node not in made:
                yield node, "what learns changes"
    for call in _calls(region, "step"):
        stepped = method_of(call)[0]
        if not call.args and taken and not (stepped in zeroed or len(zeroed) == 1):
            yield call, "it may step with gradients that another training has left"


def _is_written_gradient(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Store)
    )


def _is_called_behind_backward(region: Region, regions: Regions, callers: Callers) -> bool:
    """Whether a function that reads gradients is called by regions alone that have taken them."""
    if not isinstance(region, _FUNCTIONS) or any(_calls(region, "step")):
        return False
    calls = callers.calls(region)
    return bool(calls) and all(
        (around := regions.around(call)) is not None
        and around is not region
        and any(one.lineno < call.lineno for one in _calls(around, "backward"))
        and any(one.lineno < call.lineno for one in _calls(around, "zero_grad"))
        for call in calls
    )


def _is_module(node: ast.Attribute) -> bool:
    """`torch.autograd.grad`, `autograd.grad`: the function."""
    return getattr(node.value, "attr", getattr(node.value, "id", "")) in ("autograd", "func")


def _calls(region: ast.AST, method: str) -> list[ast.Call]:
    return [call for call in calls_in([region]) if getattr(call.func, "attr", "") == method]


def _leaves(region: ast.AST) -> set[str]:
    """The names of tensors that a region lets learn, and of which it takes the gradient."""
    lists = {
        name.id
        for loop in ast.walk(region)
        if isinstance(loop, (ast.For, ast.comprehension))
        if any(last_name(part) in _LISTS for part in ast.walk(loop.iter))
        for name in ast.walk(loop.target)
        if isinstance(name, ast.Name)
    }
    asked = {
        path_of(node.value)
        for node in ast.walk(region)
        if isinstance(node, ast.Attribute) and node.attr == "grad"
    }
    for call in _calls(region, "grad"):
        asked |= {path_of(part) for given in call.args[1:2] for part in ast.walk(given)}
    marked = {path for node in ast.walk(region) for path in _marked(node)}
    return {path for path in asked & marked if path.isidentifier()} - lists


def _of_new_values(region: ast.AST, leaves: set[str]) -> set[ast.AST]:
    """The methods that mark what a call makes for one of these names."""
    return {
        node.value.func
        for node in ast.walk(region)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if {path_of(target) for target in node.targets} <= leaves
        if isinstance(getattr(node.value.func, "value", None), ast.Call)
    }


def _marked(node: ast.AST) -> Iterator[str]:
    """What a statement or a call lets learn."""
    if isinstance(node, ast.Attribute) and node.attr in ("requires_grad_", "requires_grad"):
        yield path_of(node.value)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        is_made = any(part.arg == "requires_grad" for part in node.value.keywords)
        if is_made or last_name(node.value.func) == "requires_grad_":
            yield from map(path_of, node.targets)

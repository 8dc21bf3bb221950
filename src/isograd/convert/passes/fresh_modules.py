"""Modules that were just built: MindSpore's own methods are torch's for them.

Once an optimizer has stepped, what writes a Parameter's memory anew (`load_state_dict`) leaves the
optimizer with the old one in MindSpore 2.10; then the runtime's functions copy.  MindSpore's method
knows its own names alone.  A file that reads checkpoints may read torch's names, which the
runtime's function takes as well.
"""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.places import place

_LOADS = "torch.nn.Module.load_state_dict"
_READS = "torch.load"
_ADDS = frozenset(("torch.nn.Module.add_module", "torch.nn.Module.register_module"))
_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Functions that are followed into each other.
_DEEPEST = 4
_TRAINS = frozenset(("step", "backward"))
#: Classes whose children nothing but the code of those that derive from them runs, or all.
_RUNS_BY_ITSELF = frozenset(
    f"torch.nn.{name}" for name in ("Module", "Sequential", "ModuleDict", "ModuleList")
)


class FreshModules:
    """`net.load_state_dict(values)` behind `net = Net()`, `self.add_module(name, layer)`."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "weights for a network that was just built",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)

                def forward(self, x):
                    return self.layer(x)


            def build(values):
                net = Net()
                net.load_state_dict(values)
                return net
            """,
        ),
    )
    counterexamples = (
        Example(
            "weights for a network in training",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)

                def forward(self, x):
                    return self.layer(x)


            def train(values, x):
                net = Net()
                net(x).sum().backward()
                net.load_state_dict(values)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write MindSpore's method."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None or not use.is_member or not isinstance(node.func, ast.Attribute):
            return False
        if file.is_ported_module_member(use):
            return False
        if use.api == _LOADS and _is_own_method_enough(node, node.func.value, file):
            given = file.argument(node.args[0])
            code = f"{file.source(node.func.value)}.load_state_dict({given})"
        elif use.api in _ADDS and len(node.args) == 2 and _takes_children(node.func.value, file):
            name, child = map(file.argument, node.args)
            code = f"{file.source(node.func.value)}.insert_child_to_cell({name}, {child})"
        else:
            return False
        layout.write_call(file, node, code)
        file.uses += 1
        file.converted += 1
        return True


def _is_own_method_enough(node: ast.Call, network: ast.expr, file: FileEdit) -> bool:
    """Whether MindSpore's own load_state_dict does what torch's does here, or raises."""
    if file.settings.reads_states:
        return False  # a state with torch's names may be given
    if not (_loads_whole(node) and _is_fresh(network, file)):
        return False
    return all(file.api_of_call(call) != _READS for call in file.tree.of(ast.Call))


def _loads_whole(node: ast.Call) -> bool:
    """Whether all names have to fit, so that those of another framework raise."""
    strict = [part.value for part in node.keywords if part.arg == "strict"] + node.args[1:2]
    others = [part.arg for part in node.keywords if part.arg != "strict"]
    is_whole = all(isinstance(value, ast.Constant) and value.value is True for value in strict)
    return len(node.args) in (1, 2) and not others and is_whole


def _is_fresh(node: ast.expr, file: FileEdit, depth: int = 0) -> bool:
    """Whether a name was built in the same function, which trains nothing, or by its caller."""
    function = file.tree.function(node)
    if not isinstance(node, ast.Name) or function is None or depth > _DEEPEST:
        return False
    built = False
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and any(
            getattr(t, "id", "") == node.id for t in part.targets
        ):
            if not _builds(part.value, file, depth):
                return False
            built = True
        elif isinstance(part, ast.Call) and getattr(part.func, "attr", "") in _TRAINS:
            return False
    return built or _is_given_fresh(node.id, function, file, depth)


def _builds(value: ast.expr, file: FileEdit, depth: int) -> bool:
    """Whether a call makes a module, or a function of the file that returns one it has made."""
    if not isinstance(value, ast.Call) or depth > _DEEPEST:
        return False
    if place(value) in file.facts.built:
        return True
    named = file.carrying.functions.get(getattr(value.func, "id", ""), [])
    if len(named) != 1 or file.carrying.owner(named[0]) is not None or named[0].decorator_list:
        return False
    returned = [part.value for part in ast.walk(named[0]) if isinstance(part, ast.Return)]
    return bool(returned) and all(
        part is not None and (_builds(part, file, depth + 1) or _is_fresh(part, file, depth + 1))
        for part in returned
    )


def _is_given_fresh(name: str, function: _Function, file: FileEdit, depth: int) -> bool:
    """Whether all calls of a function, which are in its file, pass a module that was just built."""
    names = [part.arg for part in function.args.args]
    carrying = file.carrying
    if name not in names or carrying.owner(function) is not None or function.decorator_list:
        return False
    if file.settings.starting.is_taken(function.name, file.file):
        return False
    reads = carrying.loads.get(function.name, [])
    calls = [file.tree.parents.get(read) for read in reads]
    position = names.index(name)
    return bool(reads) and all(
        isinstance(call, ast.Call)
        and call.func is read
        and len(call.args) > position
        and _is_fresh(call.args[position], file, depth + 1)
        for call, read in zip(calls, reads, strict=True)
    )


def _takes_children(node: ast.expr, file: FileEdit) -> bool:
    """Whether `self` runs its children by its own code, or keeps up with what it is given."""
    if getattr(node, "id", "") != "self":
        return False
    owner = file.tree.owner(node)
    info = None if owner is None else file.class_info(owner)
    return info is not None and info.root in _RUNS_BY_ITSELF

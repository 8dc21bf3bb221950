"""Which statements of a loop cannot depend on what a network learns.

Where parameters are reached by modules alone, a value depends on one only by a call of something
that may be a module.  What calls nothing but Python's, numpy's and torch's functions, methods of
tensors and dictionaries, and functions of the file that do the same, is free of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import changed_by
from isograd.convert.training.names import UNRECORDED
from isograd.convert.training.other_files import OtherFiles
from isograd.convert.training.own_gradients import OwnGradients, takes_gradients
from isograd.convert.training.paths import bound_by, names_read, path_of, read_by, root_of
from isograd.convert.training.written_leaves import leaves_of
from isograd.convert.tree import imported_from

_PYTHON = frozenset(
    "len range int float str bool min max abs sum round enumerate zip list tuple dict set sorted "
    "reversed isinstance next iter print".split()
)
#: They call their first argument; what a lambda calls stands in it.
_CALLING = ("map", "filter")
CONTAINERS = frozenset(
    "items keys values get pop append extend format split join copy astype".split()
)
#: Methods of tensors that return what was there, in another dtype or on another device, or numbers.
TENSORS = frozenset(
    "to cuda cpu float double half long int bool type size dim numel item tolist numpy detach view "
    "reshape unsqueeze squeeze flatten permute transpose t contiguous clone narrow chunk argmax "
    "max sum mean eq ne all any repeat expand".split()
)
_CREATING = frozenset(f"torch.{name}" for name in "empty zeros ones full tensor".split())
_NOT_FREE = ("torch.nn.Module", "torch.optim", "torch.autograd", "torch.func", "torch.jit")


@dataclass
class Freedom:
    """Asks of one file.

    guesses: whether a method of what is not known is that of the only class which has one.
    others: the other files of the project, of which functions may be called.
    """

    file: FileEdit
    guesses: bool = True
    others: OtherFiles | None = None
    _own_gradients: OwnGradients | None = None
    _functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.file.tree.module.body:
            if isinstance(node, ast.FunctionDef):
                self._functions[node.name] = node
        self._leaves = leaves_of(self.file)
        self._numpy = imported_from(self.file.tree, ("numpy", "math", "time", "random", "os"))
        self._made_by_numpy: set[str] = set()
        while found := self._all_assigned(self._is_of_numpy) - self._made_by_numpy:
            self._made_by_numpy |= found  # `draw = rng.normal` of an rng that numpy has made
        self._lambdas = self._all_assigned(lambda value: isinstance(value, ast.Lambda))
        self._types = self._all_assigned(self._is_type)
        self._tuples = self._all_assigned(self._is_namedtuple)
        self._plain_classes = {
            node.name: node
            for node in self.file.tree.module.body
            if isinstance(node, ast.ClassDef) and not node.keywords and not node.decorator_list
            if all(getattr(base, "id", "") == "object" for base in node.bases)
        }
        self._made_by_plain = {
            name: kind
            for kind in self._plain_classes
            for name in self._all_assigned(lambda value, kind=kind: _is_call_of(value, kind))  # type: ignore[misc]
        }

    def _all_assigned(self, is_one: Callable[[ast.expr], bool]) -> set[str]:
        """Names that hold nothing but values of one kind."""
        made: set[str] = set()
        other: set[str] = set()
        for node in self.file.tree.of(ast.Name):
            if isinstance(node.ctx, ast.Load):
                continue
            parent = self.file.tree.parents[node]
            is_made = isinstance(parent, ast.Assign) and is_one(parent.value)
            (made if is_made else other).add(node.id)
        return made - other

    def _is_of_numpy(self, value: ast.expr) -> bool:
        """What a call of numpy and its like has made."""
        root = root_of(value)
        return root is not None and root.id in self._numpy | self._made_by_numpy

    def _is_namedtuple(self, value: ast.expr) -> bool:
        """A class that `collections.namedtuple` makes."""
        return _is_call_of(value, "namedtuple") or _is_call_of(value, "collections.namedtuple")

    def _is_type(self, value: ast.expr) -> bool:
        """`torch.FloatTensor`, or one of two by a condition."""
        if isinstance(value, ast.IfExp):
            return self._is_type(value.body) and self._is_type(value.orelse)
        use = self.file.use(value)
        return use is not None and use.api.startswith("torch.") and use.api.endswith("Tensor")

    def is_free(self, node: ast.AST) -> bool:
        """Whether all that a statement or expression calls is free of parameters.

        What is computed without gradients is: a teacher's answer, for instance.
        """
        if isinstance(node, ast.With) and all(map(self._is_unrecorded, node.items)):
            return True
        for part in ast.walk(node):
            if isinstance(part, (ast.Await, ast.Yield, ast.YieldFrom)):
                return False
            if isinstance(part, ast.Call) and not self._is_free_call(part):
                return False
            if self._leaves and path_of(part) in self._leaves and not is_detached(part, self.file):
                return False
        return True

    def is_write_to(self, names: set[str], statement: ast.stmt) -> bool:
        """Whether a statement is `x.mul_(y)` of one of these names, and otherwise free."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        use, root = self.file.use(call.func), root_of(call.func)
        is_tensors = use is not None and use.api.startswith("torch.Tensor.")
        is_own = root is not None and root.id in names
        return is_tensors and is_own and all(map(self.is_free, ast.iter_child_nodes(call)))

    def _is_unrecorded(self, item: ast.withitem) -> bool:
        call = item.context_expr
        use = self.file.use(call.func) if isinstance(call, ast.Call) else None
        return use is not None and use.api in UNRECORDED

    def _is_free_call(self, call: ast.Call) -> bool:
        use = self.file.use(call.func)
        api = "" if use is None else use.api
        if api.startswith("torch.Tensor."):
            is_written = api.endswith("_") and not self._is_new(call.func)
            return not (api.endswith("backward") or is_written)
        if api == "torch.autograd.Variable":
            return True
        if api.startswith("torch."):
            is_class = api.rpartition(".")[2][:1].isupper() and not self._is_type(call.func)
            return not is_class and not api.startswith(_NOT_FREE)
        root = root_of(call.func)
        if self._takes_gradients(call.func):
            return True
        if isinstance(call.func, ast.Attribute):
            if self._is_of_plain_class(call.func):
                return True
            is_numpy = root is not None and (
                root.id in self._numpy or root.id in self._made_by_numpy
            )
            return is_numpy or call.func.attr in CONTAINERS or call.func.attr in TENSORS
        if isinstance(call.func, ast.Name) and call.func.id in _CALLING:
            function = call.args[0] if call.args else call
            is_free = isinstance(function, ast.Name) and self._is_free_name(function)
            return (is_free or isinstance(function, ast.Lambda)) and self._is_pythons(call.func)
        if isinstance(call.func, ast.Name):
            known = self._types | self._tuples | self._made_by_numpy
            return call.func.id in known or self._is_free_name(call.func)
        return False

    def _is_of_plain_class(self, method: ast.Attribute) -> bool:
        """Whether it is a free method of an object of a class of the file that is no module.

        What is not known to be another object is taken for one of the only class with this method;
        what a step is given is asked for graphs of its own (`graphs_given`).
        """
        name = method.value.id if isinstance(method.value, ast.Name) else ""
        own = self._plain_classes.get(self._made_by_plain.get(name, ""))
        if own is None and name != "self" and self.guesses:
            own = self._only_class_with(method.attr)
        functions = [] if own is None else [f for f in own.body if isinstance(f, ast.FunctionDef)]
        found = [f for f in functions if f.name == method.attr and not f.decorator_list]
        key = f"{name}.{method.attr}"
        if found and key not in self._known:
            self._known[key] = False  # one that calls itself is not looked into
            self._known[key] = all(map(self.is_free, found[-1].body))
        return bool(found) and self._known[key]

    def _only_class_with(self, method: str) -> ast.ClassDef | None:
        """The class of the file that alone has a method, if it is no module."""
        owners = [
            node
            for node in self.file.tree.of(ast.ClassDef)
            if any(getattr(part, "name", "") == method for part in node.body)
        ]
        only = owners[0] if len(owners) == 1 else None
        return only if only in self._plain_classes.values() else None

    def _is_new(self, method: ast.expr) -> bool:
        """Whether a method is called of a tensor that the same expression makes."""
        made = method.value if isinstance(method, ast.Attribute) else None
        if not isinstance(made, ast.Call):
            return False
        use = self.file.use(made.func)
        is_made = use is not None and use.api in _CREATING
        is_type = isinstance(made.func, ast.Name) and made.func.id in self._types
        return is_made or is_type or self._is_type(made.func)

    def is_of_type(self, call: ast.Call) -> bool:
        """Whether a name that is called holds a class of tensors, as `torch.FloatTensor` is."""
        return isinstance(call.func, ast.Name) and call.func.id in self._types

    def _takes_gradients(self, function: ast.expr) -> bool:
        """Whether what is called takes gradients of its own, which no step can hold.

        Its value comes into the step from outside, and is asked for graphs (`graphs_given`).
        """
        if self.others is None:
            own = self._functions.get(getattr(function, "id", ""))
            return own is not None and takes_gradients(own)
        if self._own_gradients is None:
            self._own_gradients = OwnGradients(self.others)
        return self._own_gradients.are_taken_by(function, self.file.file)

    def _is_free_name(self, name: ast.Name) -> bool:
        if name.id in self._lambdas:
            return self._is_free_lambda(name.id)
        if self.file.tree.binds(name.id, name):
            return False
        if name.id in self._functions:
            return self._is_unrecorded_function(name.id) or self._is_free_function(name.id)
        return name.id in _PYTHON and self._is_pythons(name)

    def _is_pythons(self, name: ast.Name) -> bool:
        return not self.file.tree.binds(name.id, name) and name.id not in self.file.tree.stored

    def _is_free_lambda(self, name: str) -> bool:
        """Whether all that a name holds are lambdas, and free."""
        if name not in self._known:
            self._known[name] = False  # one that calls itself is not looked into
            self._known[name] = all(
                self.is_free(node.value.body)
                for node in self.file.tree.of(ast.Assign)
                if isinstance(node.value, ast.Lambda)
                and any(getattr(target, "id", "") == name for target in node.targets)
            )
        return self._known[name]

    def _is_unrecorded_function(self, name: str) -> bool:
        """Whether a function says that nothing is recorded: `@torch.no_grad()`."""
        return any(
            self.file.named.get(one.func if isinstance(one, ast.Call) else one, "") in UNRECORDED
            for one in self._functions[name].decorator_list
        )

    def _is_free_function(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False  # one that calls itself is not looked into
            self._known[name] = all(map(self.is_free, self._functions[name].body))
        return self._known[name]


def _is_call_of(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) == name


def tainted_in(
    statements: list[ast.stmt], freedom: Freedom, earlier: Iterable[ast.stmt] = ()
) -> dict[ast.stmt, bool]:
    """For each statement whether what it binds may depend on parameters.

    earlier: statements before these, of which values are read by `detach()`.
    """
    tainted: set[str] = set()
    settled: set[str] = set()
    own: set[str] = set()
    found: dict[ast.stmt, bool] = {}
    behind = list(statements)
    for statement in (*earlier, *behind):
        is_own = statement in behind
        if is_own and not found:
            settled, tainted = tainted, set()
        is_free = freedom.is_free(statement) or freedom.is_write_to(own, statement)
        is_free = is_free and not (read_by(statement) & tainted)
        is_free = is_free and not any(
            node.id in settled and not is_detached(node, freedom.file)
            for node in names_read(statement)
        )
        own = own | bound_by(statement)
        if is_own:
            found[statement] = not is_free
        bound, changed = bound_by(statement), changed_by(statement, freedom.file)
        settled = settled - bound
        tainted = tainted - bound if is_free else tainted | bound | changed
    return found


def is_detached(node: ast.AST, file: FileEdit) -> bool:
    """Whether a name is read for its value alone: `x.detach()`, `x.item()`, `(x + 1).detach()`.

    What one of these methods is called of gets no gradient, whatever stands in it.
    """
    part = node
    while isinstance(part, ast.expr):
        parent = file.tree.parents[part]
        above = file.tree.parents.get(parent)
        if (
            isinstance(parent, ast.Attribute)
            and parent.attr in ("detach", "item")
            and isinstance(above, ast.Call)
            and above.func is parent
        ):
            return True
        part = parent
    return False

"""Which statements of a loop cannot depend on what a network learns.

Where parameters are reached by modules alone, a value depends on one only by a call of something
that may be a module.  What calls nothing but Python's, numpy's and torch's functions, methods of
tensors and dictionaries, and functions of the file that do the same, is free of them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from isograd.convert.file import FileEdit
from isograd.convert.training.paths import bound_by, read_by, root_of
from isograd.convert.tree import imported_from

_PYTHON = frozenset(
    "len range int float str bool min max abs sum round enumerate zip list tuple dict set sorted "
    "reversed isinstance next iter print".split()
)
_CONTAINERS = frozenset("items keys values get pop append extend format split join copy".split())
#: Methods of tensors that return what was there, in another dtype or on another device, or numbers.
_TENSORS = frozenset(
    "to cuda cpu float double half long int bool type size dim numel item tolist numpy detach view "
    "reshape unsqueeze squeeze flatten permute transpose t contiguous clone narrow chunk argmax "
    "max sum mean eq ne all any repeat expand".split()
)
_NOT_FREE = ("torch.nn.Module", "torch.optim", "torch.autograd", "torch.func", "torch.jit")


@dataclass
class Freedom:
    """Asks of one file."""

    file: FileEdit
    _functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.file.tree.module.body:
            if isinstance(node, ast.FunctionDef):
                self._functions[node.name] = node
        self._numpy = imported_from(self.file.tree, ("numpy", "math", "time", "random", "os"))
        self._made_by_numpy = self._made()

    def _made(self) -> set[str]:
        """Names that hold nothing but what calls of numpy and its like have made."""
        made: set[str] = set()
        other: set[str] = set()
        for node in self.file.tree.of(ast.Name):
            if isinstance(node.ctx, ast.Load):
                continue
            parent = self.file.tree.parents[node]
            value = root_of(parent.value) if isinstance(parent, ast.Assign) else None
            (made if value is not None and value.id in self._numpy else other).add(node.id)
        return made - other

    def is_free(self, node: ast.AST) -> bool:
        """Whether all that a statement or expression calls is free of parameters."""
        for part in ast.walk(node):
            if isinstance(part, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)):
                return False
            if isinstance(part, ast.Call) and not self._is_free_call(part):
                return False
        return True

    def _is_free_call(self, call: ast.Call) -> bool:
        use = self.file.use(call.func)
        api = "" if use is None else use.api
        if api.startswith("torch.Tensor."):
            return not api.endswith(("backward", "_"))
        if api.startswith("torch."):
            is_class = api.rpartition(".")[2][:1].isupper()
            return not is_class and not api.startswith(_NOT_FREE)
        root = root_of(call.func)
        if isinstance(call.func, ast.Attribute):
            is_numpy = root is not None and (
                root.id in self._numpy or root.id in self._made_by_numpy
            )
            return is_numpy or call.func.attr in _CONTAINERS or call.func.attr in _TENSORS
        if isinstance(call.func, ast.Name):
            return self._is_free_name(call.func)
        return False

    def _is_free_name(self, name: ast.Name) -> bool:
        if self.file.tree.binds(name.id, name):
            return False
        if name.id in self._functions:
            return self._is_free_function(name.id)
        return name.id in _PYTHON and name.id not in self.file.tree.stored

    def _is_free_function(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = False  # one that calls itself is not looked into
            self._known[name] = all(map(self.is_free, self._functions[name].body))
        return self._known[name]


def tainted_in(statements: list[ast.stmt], freedom: Freedom) -> dict[ast.stmt, bool]:
    """For each statement whether what it binds may depend on parameters."""
    tainted: set[str] = set()
    found = {}
    for statement in statements:
        is_free = freedom.is_free(statement) and not (read_by(statement) & tainted)
        found[statement] = not is_free
        bound = bound_by(statement)
        tainted = tainted - bound if is_free else tainted | bound
    return found

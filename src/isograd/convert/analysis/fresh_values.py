"""What a block that records no gradients binds, and whether all of it is computed there.

A tensor that only gets another name keeps its gradient in torch; a new one has none.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from isograd.convert.analysis.bound_names import is_sizes
from isograd.convert.analysis.unbound_reads import names_in
from isograd.convert.file import FileEdit
from isograd.convert.tree import Tree, pairs_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: What may return the tensor that it is given.
_PASSING = frozenset(
    """to float double half bfloat16 long int short char byte bool cpu cuda type type_as contiguous
    flatten ravel reshape as_tensor asarray atleast_1d atleast_2d atleast_3d real conj conj_physical
    resolve_conj resolve_neg positive dropout dropout1d dropout2d dropout3d alpha_dropout
    feature_alpha_dropout rrelu get nan_to_num""".split()
)
_FRESH_ATTRIBUTES = frozenset("torch.Tensor.data torch.Tensor.T torch.Tensor.mT".split())
#: Of what `max` and its like return.
_PARTS = ("values", "indices")
_NUMBERS = frozenset("len int float bool range".split())
#: Layers that may return their input, or take others.
_OTHER_LAYERS = frozenset(
    "Module Identity Sequential ModuleList ModuleDict Flatten DataParallel RReLU".split()
)
#: Networks in networks, as far as they are looked into.
_DEEPEST = 4
_ENDLESS = (ast.Pass, ast.Assert, ast.Raise)


def fresh_names(block: ast.With, function: _Function, file: FileEdit) -> list[str] | None:
    """The names that a block binds to new tensors and that are read outside of it.

    None where it does anything else that others see: changes in place, results, other names for
    tensors from outside.
    """
    found = _Block(file)
    if not found.takes(block.body):
        return None
    inside = {id(part) for part in ast.walk(block)}
    others = [part for part in ast.walk(function) if id(part) not in inside]
    known = {part.arg for part in others if isinstance(part, ast.arg)}
    for part in others:
        if isinstance(part, (ast.Global, ast.Nonlocal)):
            known.update(part.names)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            known.add(part.id)
    found.settle(known)
    if not found.changed <= found.fresh - known:
        return None
    read = {
        part.id for part in others if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }
    escaping = read & found.bound
    sure = {
        name
        for statement in block.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        for name in _targets(target)
    }
    if not escaping <= found.fresh & sure:
        return None
    return [name for name in sorted(escaping) if not found.is_number(name)]


def returns_new_values(function: _Function, file: FileEdit) -> bool:
    """Whether a function ends with new tensors alone, and changes nothing that others see."""
    *body, last = function.body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]  # its docstring
    found = _Block(file)
    if not isinstance(last, ast.Return) or last.value is None or not found.takes([*body]):
        return False
    known = {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
    found.settle(known)
    is_quiet = found.changed <= found.fresh - known and found.is_quiet(last)
    return is_quiet and found.is_fresh(last.value)


@dataclass
class _Block:
    """The bindings of a block. changed: names with `+=`; fresh: those of new values alone."""

    file: FileEdit
    depth: int = _DEEPEST
    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)

    @property
    def bound(self) -> set[str]:
        """All names that it binds."""
        return set(self.values) | self.unknown

    def takes(self, statements: Sequence[ast.stmt]) -> bool:
        """Whether these statements bind names and do nothing else; notes what they bind."""
        return all(map(self._takes, statements))

    def _takes(self, node: ast.stmt) -> bool:
        if isinstance(node, (ast.If, ast.For)):
            if isinstance(node, ast.For):
                self.unknown.update(part.id for part in names_in(node.target))
            first = node.test if isinstance(node, ast.If) else node.iter
            return self.is_quiet(first) and self.takes([*node.body, *node.orelse])
        if not self.is_quiet(node):
            return False
        if isinstance(node, ast.Assign):
            bound = [name for target in node.targets for name in _targets(target)]
            for name in bound:
                self.values.setdefault(name, []).append(node.value)
            return "" not in bound
        if isinstance(node, ast.AugAssign):
            name = getattr(node.target, "id", "")
            self.changed.add(name)
            return bool(name)
        return isinstance(node, _ENDLESS)

    def is_quiet(self, node: ast.AST) -> bool:
        """Whether no call in it changes a tensor in place, as far as torch's names say."""
        for part in ast.walk(node):
            if isinstance(part, (ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom)):
                return False
            if isinstance(part, ast.Call):
                name = getattr(part.func, "attr", getattr(part.func, "id", ""))
                if name.endswith("_") or any(
                    one.arg in ("inplace", "out", None) for one in part.keywords
                ):
                    return False
        return True

    def settle(self, known: set[str]) -> None:
        """Find which names hold new values alone. known: names that are bound outside, too."""
        self.fresh = set(self.values) - self.unknown
        self.held = known
        while True:
            lost = {
                name
                for name in self.fresh
                if not all(self.is_fresh(value) for value in self.values[name])
            }
            if not lost:
                return
            self.fresh -= lost

    def is_number(self, name: str) -> bool:
        """Whether a name holds sizes and other numbers of Python's alone."""
        return all(_is_number(value) for value in self.values[name])

    def is_fresh(self, node: ast.expr) -> bool:
        """Whether an expression is no tensor from outside under another name."""
        if isinstance(node, (ast.Constant, ast.Compare, ast.BinOp)) or _is_number(node):
            return True
        if isinstance(node, ast.UnaryOp):
            return not isinstance(node.op, ast.UAdd) or self.is_fresh(node.operand)
        if isinstance(node, ast.IfExp):
            return self.is_fresh(node.body) and self.is_fresh(node.orelse)
        if isinstance(node, ast.Tuple):
            return all(map(self.is_fresh, node.elts))
        if isinstance(node, ast.Name):
            return node.id in self.fresh - self.held
        if isinstance(node, ast.Subscript):
            keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
            return any(isinstance(key, ast.Slice) for key in keys) or self.is_fresh(node.value)
        if isinstance(node, ast.Attribute):
            if node.attr in _PARTS and isinstance(node.value, ast.Call):
                return self.is_fresh(node.value)
            use = self.file.use(node)
            return use is not None and use.api in _FRESH_ATTRIBUTES
        return isinstance(node, ast.Call) and self._is_fresh_call(node)

    def _is_fresh_call(self, call: ast.Call) -> bool:
        if any(getattr(argument, "value", None) is True for argument in call.args):
            return False  # it may be `inplace`
        use = self.file.use(call.func)
        if use is None or not use.api.startswith("torch."):
            return _is_layer(call.func, self.file, self.depth)
        name = use.api.rpartition(".")[2]
        if name[:1].isupper():
            return False
        if name not in _PASSING:
            return (
                use.api.startswith(("torch.Tensor.", "torch.nn.functional.", "torch.linalg."))
                or use.api.count(".") == 1
            )
        if use.is_member and isinstance(call.func, ast.Attribute):
            return self.is_fresh(call.func.value)
        return bool(call.args) and self.is_fresh(call.args[0])


def _is_number(node: ast.expr) -> bool:
    """`x.shape`, `x.size(0)`, `len(x)`, `2`."""
    if isinstance(node, ast.Constant) or is_sizes(node):
        return True
    if isinstance(node, ast.Subscript):
        return is_sizes(node.value)
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", "") == "size" or getattr(node.func, "id", "") in _NUMBERS
    return False


def _targets(node: ast.expr) -> Iterator[str]:
    """The names of an assignment's target; "" for anything that is no name."""
    if isinstance(node, (ast.Tuple, ast.List)):
        for one in node.elts:
            yield from _targets(one)
    else:
        yield node.id if isinstance(node, ast.Name) else ""


def _is_layer(called: ast.expr, file: FileEdit, depth: int) -> bool:
    """`self.layer`, which the class makes one of torch's layers that compute."""
    owner = file.tree.owner(called)
    if owner is None or not isinstance(called, ast.Attribute):
        return False
    if getattr(called.value, "id", "") != "self":
        return False
    made = list(_made(called.attr, owner, file.tree))
    return bool(made) and all(_computes(value, file, depth) for value in made)


def _made(name: str, owner: ast.ClassDef, tree: Tree) -> Iterator[ast.expr | None]:
    """What a class binds to an attribute; None for what is not written out."""
    nodes = tree.walked(owner)
    values = {
        one: value if one is target or value is not node.value else None
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        for one, value in pairs_of(target, node.value)
    }
    for part in nodes:
        is_it = isinstance(part, ast.Attribute) and part.attr == name
        if is_it and not isinstance(part.ctx, ast.Load):  # type: ignore[attr-defined]  # an attribute
            yield values.get(part)  # type: ignore[call-overload]  # an expression


def _computes(value: ast.expr | None, file: FileEdit, depth: int) -> bool:
    """Whether what an expression makes returns new tensors."""
    if not isinstance(value, ast.Call) or not depth:
        return False
    use = file.use(value.func)
    if use is None:
        return _is_network(value.func, file, depth - 1)
    if use.api == "torch.nn.Sequential":
        return any(_computes(part, file, depth - 1) for part in value.args)
    if not use.api.startswith("torch.nn.") or use.api.count(".") < 2:
        return False
    name = use.api.rpartition(".")[2]
    may_change = any(one.arg in ("inplace", None) for one in value.keywords) or any(
        getattr(argument, "value", None) is True for argument in value.args
    )
    return (
        name[:1].isupper()
        and "Dropout" not in name
        and name not in _OTHER_LAYERS | ({name} if may_change else set())
    )


def _is_network(called: ast.expr, file: FileEdit, depth: int) -> bool:
    """Whether a class of the file has a forward that returns new tensors."""
    if not isinstance(called, ast.Name):
        return False
    defined = file.tree.defined.get(called.id, [])
    if len(defined) != 1 or not isinstance(defined[0], ast.ClassDef):
        return False
    forward = next((f for f in defined[0].body if getattr(f, "name", "") == "forward"), None)
    if not isinstance(forward, ast.FunctionDef):
        return False
    found = _Block(file, depth=depth)
    parts = file.tree.walked(forward)
    stored = Counter(
        part.id
        for part in parts
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    )
    assigned = [part for part in parts if isinstance(part, ast.Assign)]
    for part in assigned:
        for name in (name for target in part.targets for name in _targets(target)):
            stored[name] -= 1
            found.values.setdefault(name, []).append(part.value)
    found.settle({part.arg for part in parts if isinstance(part, ast.arg)} | {*+stored})
    returned = [part.value for part in parts if isinstance(part, ast.Return)]
    return bool(returned) and all(one is not None and found.is_fresh(one) for one in returned)

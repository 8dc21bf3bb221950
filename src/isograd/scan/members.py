"""Attributes and calls of values: what `value.name` is, and what `value(…)` returns."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from isograd.scan import behaviour, builtin_calls
from isograd.scan.names import module_result
from isograd.scan.names_in_place import SPECIAL, operator_method
from isograd.scan.state import CALL, UNSURE, State, project_member
from isograd.scan.values import (
    ANY_MODULE,
    PARAMETER,
    PLAIN,
    TENSOR,
    TENSORS,
    Api,
    ClassInfo,
    Differentiated,
    Foreign,
    FunctionInfo,
    Instance,
    Items,
    Made,
    Mapping,
    Namespace,
    Plain,
    Returns,
    Super,
    Tensor,
    Value,
    is_module,
    join,
    part,
)

#: The special names of operators are the methods that do the same.
_TENSOR_APIS = {name: Api(f"torch.Tensor.{method}") for name, method in SPECIAL.items()}
_MODULE_APIS: dict[str, Api] = {}
#: Methods that return the module itself.
_FLUENT = frozenset(
    "to eval train cuda cpu half float double bfloat16 requires_grad_ apply".split()
)
_REGISTERING = frozenset("register_buffer register_parameter add_module register_module".split())
#: Attributes of torch's own modules that hold tensors.
_HELD = frozenset(
    """weight bias running_mean running_var num_batches_tracked in_proj_weight in_proj_bias
    weight_g weight_v""".split()
)
_SILENT = (Plain, Foreign)
#: What `getattr(nn, kind)` finds, by the package that is asked.
_LOOKED_UP: dict[str, Value] = {
    "torch.nn": Returns(ANY_MODULE),
    "torch.nn.functional": Returns(TENSOR),
}


#: What gives a function's gradients beside its result.
_VALUE_AND_GRAD = "mindspore.value_and_grad"


class Members:
    """Looks members up and calls values; evaluation itself is the subclass's."""

    if TYPE_CHECKING:

        def visit(self, node: ast.expr) -> Value: ...
        def bind(self, target: ast.expr, value: Value) -> None: ...
        def annotation_value(self, node: ast.expr) -> Value: ...
        def read_function(
            self, function: FunctionInfo, arguments: list[Value], keywords: dict[str, Value]
        ) -> None: ...

    def __init__(self, state: State) -> None:
        self.state = state

    def record(self, line: int, column: int, api: str, how: str, node: ast.AST) -> None:
        """Note one use; a name inside a string annotation stands where the string stands."""
        if self.state.origin is not None:
            line, column = self.state.origin
        self.state.uses.append((line, column, api, how))

    def either(self, first: Value, second: Value) -> Value:
        """`join`, where a function or class of torch is only one of two possibilities.

        A call of it is then no use of that one: `act = act or nn.ReLU`.
        """
        if first is None and second.__class__ is Api:
            return self.held(second)
        if second is None and first.__class__ is Api:
            return self.held(first)
        return join(first, second)

    def held(self, value: Api) -> Value:
        """What is known of something that may be this thing of torch, or another of its kind."""
        kind = self.state.names.kind(value.name)
        if kind in ("m", ""):
            return value
        if kind in ("d", "o"):
            return PLAIN
        return Returns(self.state.names.result(value.name, [], {}))

    def member(self, owner: Value, name: str) -> Value:
        """The value of `owner.name`."""
        handler = _MEMBERS.get(owner.__class__)
        return None if handler is None else handler(self, owner, name)

    def _of_api(self, owner: Api, name: str) -> Value:
        names = self.state.names
        full = names.canonical(f"{owner.name}.{name}")
        if not names.kind(full) and names.kind(owner.name) not in ("m", ""):
            inherited = f"torch.nn.Module.{name}"
            if names.kind(owner.name) == "M" and name in names.module:
                return Api(inherited)
            if owner.name in behaviour.TENSOR_CLASSES and name in names.tensor:
                return Api(f"torch.Tensor.{name}")
            return owner
        return Api(full)

    def _of_tensor(self, owner: Tensor, name: str) -> Value:
        found = _TENSOR_APIS.get(name)
        if found is None and name in self.state.names.tensor:
            found = _TENSOR_APIS[name] = Api(f"torch.Tensor.{name}")
        return found

    def _of_module(self, name: str) -> Value:
        found = _MODULE_APIS.get(name)
        if found is None and name in self.state.names.module:
            found = _MODULE_APIS[name] = Api(f"torch.nn.Module.{name}")
        return found

    def _of_made(self, owner: Made, name: str) -> Value:
        names, api = self.state.names, owner.api
        kind = names.kind(api)
        if kind == "O":
            return Api(f"torch.optim.Optimizer.{name}") if name in names.optimizer else None
        if kind == "S":
            known = name in names.scheduler
            return Api(f"torch.optim.lr_scheduler.LRScheduler.{name}") if known else None
        if api == "torch.amp.GradScaler":
            return Api(f"{api}.{name}") if name in names.scaler else None
        if behaviour.is_distribution(api):
            made = Returns(TENSOR) if name in behaviour.DISTRIBUTION_METHODS else None
            return TENSOR if name in behaviour.DISTRIBUTION_ATTRIBUTES else made
        if name == "forward" and owner is ANY_MODULE:
            return Returns(TENSOR)
        found = self._of_module(name)
        if found is None and name in _HELD:
            return TENSOR
        return found

    def _of_instance(self, owner: Instance, name: str) -> Value:
        info = owner.of
        found = self._in_class(info, name, set())
        if found.__class__ is FunctionInfo and found.is_property:
            self.read_function(found, [], {})
            return found.result
        if found is None and info.is_mixed and name not in info.attributes:
            return None if self._is_of_taker(info, name) else self._of_module(name)
        if found is None and info.root:
            return self._of_made(Made(info.root), name)
        return found

    def _is_of_taker(self, info: ClassInfo, name: str) -> bool:
        """Whether what is derived from a class has a member of its own by this name."""
        return any(
            name in taker.attributes or self._in_class(taker, name, set()) is not None
            for taker in info.takers
        )

    def _in_class(self, info: ClassInfo, name: str, seen: set[int]) -> Value:
        """A member by the order of the bases."""
        seen.add(id(info))
        if name in info.methods:
            return info.methods[name]
        found = info.attributes.get(name)
        if found is not None:
            return found
        for base in info.bases:
            if base.__class__ is ClassInfo and id(base) not in seen:
                found = self._in_class(base, name, seen)
                if found is not None:
                    return found
        return None

    def _of_super(self, owner: Super, name: str) -> Value:
        for base in owner.of.bases:
            if base.__class__ is ClassInfo:
                found = self._in_class(base, name, set())
                if found is not None:
                    return found
        if name.startswith("__"):
            return PLAIN
        return self._of_module(name) if owner.of.is_module else None

    def _of_items(self, owner: Items, name: str) -> Value:
        if name in owner.names:
            return part(owner, owner.names.index(name))
        if name in ("pop", "__getitem__", "popleft"):
            return Returns(owner.item)
        return Returns(owner) if name == "copy" else PLAIN

    def _of_mapping(self, owner: Mapping, name: str) -> Value:
        if name in ("get", "pop", "setdefault"):
            return Returns(owner.item)
        if name == "values":
            return Returns(Items(owner.item))
        if name == "items":
            return Returns(Items(Items(None, (PLAIN, owner.item))))
        return Returns(owner) if name == "copy" else PLAIN

    def _of_namespace(self, owner: Namespace, name: str) -> Value:
        return project_member(self.state, f"{owner.name}.{name}")

    def _of_class(self, owner: ClassInfo, name: str) -> Value:
        found = self._in_class(owner, name, set())
        if found is None and name == "apply" and owner.root == "torch.autograd.Function":
            return Returns(TENSOR)
        if found is None and owner.is_module:
            return self._of_module(name)
        return found

    def _of_silent(self, owner: Plain | Foreign, name: str) -> Value:
        if owner.__class__ is Foreign:
            return Foreign(f"{owner.name}.{name}")
        return PLAIN

    def called(
        self,
        node: ast.Call,
        value: Value,
        owner: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value:
        """What a call of a value returns."""
        kind = value.__class__
        if kind is Api:
            return self._call_api(node, value, owner, arguments, keywords)  # type: ignore[arg-type]
        if kind is FunctionInfo:
            shifted = arguments
            if value.owner is not None and not value.is_static:  # type: ignore[union-attr]
                unbound = owner.__class__ is ClassInfo
                shifted = arguments[1:] if unbound else arguments
            self.read_function(value, shifted, keywords)  # type: ignore[arg-type]
            return value.result  # type: ignore[union-attr]
        if kind is ClassInfo:
            constructor = value.methods.get("__init__")  # type: ignore[union-attr]
            if constructor is not None:
                self.read_function(constructor, arguments, keywords)
            return Instance(value)  # type: ignore[arg-type]
        if kind is Foreign:
            return self._call_foreign(node, value, arguments, keywords)  # type: ignore[arg-type]
        if kind is Returns:
            return value.value  # type: ignore[union-attr]
        if kind is Differentiated:
            self.read_function(value.of, arguments, keywords)  # type: ignore[arg-type,union-attr]
            return Items(None, (value.of.result, None))  # type: ignore[union-attr]
        if kind is Plain:
            return self._call_plain(node, owner, arguments)
        if kind in (Made, Instance):
            return self._call_instance(value, arguments, keywords)  # type: ignore[arg-type]
        if value is None and owner is not None and is_module(owner):
            return TENSOR if any(item.__class__ is Tensor for item in arguments) else None
        return None

    def _call_api(
        self,
        node: ast.Call,
        value: Api,
        owner: Value,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value:
        name = value.name
        self.state.listener.call(node, name, owner, arguments, keywords)
        if name.startswith("torch.nn.Module."):
            last = name[16:]
            if last in _FLUENT and owner is not None:
                return owner
            if last in _REGISTERING and owner.__class__ is Instance:
                _register(owner.of, node, last, arguments)
            return TENSOR if last == "forward" else module_result(last)
        if name == "torch.jit.annotate" and len(node.args) == 2:
            return self.annotation_value(node.args[0]) or arguments[1]
        if name.startswith("torch.Tensor.") and owner.__class__ is Api:
            arguments = arguments[1:]
        return self.state.names.result(name, arguments, keywords)

    def _call_plain(self, node: ast.Call, owner: Value, arguments: list[Value]) -> Value:
        """Methods of lists, which may grow by what they are given."""
        function = node.func
        if owner.__class__ is Items and arguments and isinstance(function, ast.Attribute):
            if function.attr in ("append", "insert", "add", "appendleft"):
                self.bind(function.value, Items(join(owner.item, arguments[-1])))
            elif function.attr == "extend" and arguments[0].__class__ is Items:
                self.bind(function.value, Items(join(owner.item, arguments[0].item)))
        return PLAIN

    def _call_instance(
        self, value: Made | Instance, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        if value.__class__ is Made:
            if value.api in behaviour.PAIR_MODULES:
                return TENSORS
            return TENSOR if is_module(value) else None
        info: ClassInfo = value.of  # type: ignore[union-attr]
        function = self._in_class(info, "forward" if info.is_module else "__call__", set())
        if function.__class__ is FunctionInfo:
            self.read_function(function, arguments, keywords)
            if function.result is not None or function.is_annotated:
                return function.result
        is_given = any(item.__class__ is Tensor for item in arguments)
        return TENSOR if info.is_module and is_given and function is None else None

    def _call_foreign(
        self,
        node: ast.Call,
        value: Foreign,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value:
        name = value.name
        if name == "builtins.getattr":
            return self._getattr(node, arguments)
        if name == "builtins.super":
            owner = self.state.owner
            return None if owner is None else Super(owner)
        if name == _VALUE_AND_GRAD and arguments and arguments[0].__class__ is FunctionInfo:
            return Differentiated(arguments[0])
        if name == "typing.cast" and len(node.args) == 2:
            return self.annotation_value(node.args[0])
        if (method := operator_method(name)) and _any_tensor(arguments[:1]):
            return self.state.names.result(f"torch.Tensor.{method}", arguments[1:], keywords)
        handler = builtin_calls.CALLS.get(name)
        if handler is not None:
            return handler(arguments, keywords)
        root = name.partition(".")[0]
        if root in behaviour.ARRAY_LIBRARIES:
            is_wrapped = name.rpartition(".")[2] in behaviour.ARRAY_WRAPPING
            return TENSOR if is_wrapped and _any_tensor(arguments) else PLAIN
        if root == "builtins":
            return PLAIN
        return PLAIN if root in sys.stdlib_module_names else None

    def _getattr(self, node: ast.Call, arguments: list[Value]) -> Value:
        """`getattr(value, "name")` with a literal name is the attribute itself."""
        if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
            if arguments and isinstance(arguments[0], Api):
                return _LOOKED_UP.get(arguments[0].name)
            return ANY_MODULE if arguments and is_module(arguments[0]) else None
        literal = node.args[1]
        if not isinstance(literal.value, str):
            return None
        found = self.member(arguments[0], literal.value)
        if found.__class__ is Api:
            self.record(literal.lineno, literal.col_offset, found.name, "reference", literal)
        return found

    def unknown_method(
        self,
        node: ast.Call,
        function: ast.Attribute,
        arguments: list[Value],
        keywords: dict[str, Value],
    ) -> Value:
        """A method call on something unknown: the name, or the arguments, may still tell."""
        name = function.attr
        if name not in self.state.names.tensor:
            return None
        if node.args and name.removesuffix("_") in behaviour.WITHOUT_ARGUMENTS:
            return None
        line = function.end_lineno or function.lineno
        column = (function.end_col_offset or 0) - len(name)
        is_telling = self._is_telling(name, keywords)
        if is_telling and self.state.may_be_own(name, len(arguments) + len(keywords)):
            self.record(line, column, f"torch.Tensor.{name}", UNSURE, node)
            return None
        if is_telling:
            self.record(line, column, f"torch.Tensor.{name}", CALL, node)
            if function.value.__class__ is ast.Name:
                self.state.env[function.value.id] = TENSOR
            self.state.listener.call(node, f"torch.Tensor.{name}", None, arguments, keywords)
            return self.state.names.result(f"torch.Tensor.{name}", arguments, keywords)
        if _may_be_tensor(name, node):
            self.record(line, column, f"torch.Tensor.{name}", UNSURE, node)
        return None

    def unsure_method(
        self, node: ast.Call, function: ast.Attribute, keywords: dict[str, Value]
    ) -> None:
        """A method call on an object of the project's in one call, on a tensor maybe in others."""
        name = function.attr
        if name not in self.state.names.tensor:
            return
        if _may_be_tensor(name, node) or self._is_telling(name, keywords):
            line = function.end_lineno or function.lineno
            column = (function.end_col_offset or 0) - len(name)
            self.record(line, column, f"torch.Tensor.{name}", UNSURE, node)

    def _is_telling(self, name: str, keywords: dict[str, Value]) -> bool:
        """Whether only a tensor has a method that is called like this."""
        if not behaviour.TELLING_KEYWORDS.isdisjoint(keywords):
            return True
        if name == "size":
            return True
        if name in behaviour.EVERYDAY:
            return False
        return not (name in behaviour.ARRAY_NAMES and self.state.has_arrays)


def _any_tensor(arguments: list[Value]) -> bool:
    return any(item.__class__ is Tensor for item in arguments)


def _register(info: ClassInfo, node: ast.Call, method: str, arguments: list[Value]) -> None:
    """`self.register_buffer("name", …)` makes an attribute of that name."""
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        found: Value = PARAMETER
        if method in ("add_module", "register_module"):
            given = arguments[1] if len(arguments) > 1 else None
            found = given if is_module(given) else ANY_MODULE
        info.attributes[first.value] = join(info.attributes.get(first.value), found)


def _may_be_tensor(name: str, node: ast.Call) -> bool:
    """Whether it is worth saying that the call could be a tensor's."""
    if name in ("to", "float", "half", "cuda", "cpu", "type", "split", "new", "backward"):
        first = node.args[0] if node.args else None
        is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
        return not (name in ("split", "new") and (first is None or is_text))
    if name == "repeat" and not node.args and not node.keywords:  # as of a dataset
        return False
    return name not in behaviour.EVERYDAY


_MEMBERS: dict[type, Callable[[Members, Any, str], Value]] = {
    Api: Members._of_api,
    Tensor: Members._of_tensor,
    Made: Members._of_made,
    Instance: Members._of_instance,
    Super: Members._of_super,
    Items: Members._of_items,
    Mapping: Members._of_mapping,
    Namespace: Members._of_namespace,
    ClassInfo: Members._of_class,
    Plain: Members._of_silent,
    Foreign: Members._of_silent,
}

"""Calls and attributes of a program that is followed: networks, losses, optimizers, data."""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING, Any

from isograd.init import parsers, tensors
from isograd.init.coding import as_value, call_text, free_names, member_text, text
from isograd.init.values import (
    Api,
    Data,
    Defined,
    Gradient,
    Instance,
    Known,
    Loss,
    Method,
    Network,
    Optimizer,
    Output,
    Parser,
    Parts,
    Scalar,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from isograd.init.reading import Reading
    from isograd.init.scopes import Scope

#: Methods that return the network, tensor or loss that they are called on.
_ITSELF = frozenset(
    "to cuda cpu train eval set_train half float double contiguous detach clone requires_grad_ "
    "requires_grad npu asnumpy numpy compile_cache_ copy".split()
)
_REDUCTIONS = frozenset({"mean", "sum"})
#: Functions that return what they are given, or go through it.
_THROUGH = frozenset(
    "tqdm.tqdm tqdm.auto.tqdm tqdm.trange iter next list tuple mindspore.ops.stop_gradient "
    "torch.no_grad mindspore.ops.ones_like".split()
)

Arguments = tuple[list[Value], dict[str, Value]]


class Calls:
    """What calls and attributes are; kinds are named by apis.toml and by the user's classes."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._apis = reading.apis
        self._classes = reading.classes

    def attribute(self, owner: Value, node: ast.Attribute, scope: Scope) -> Value:
        """`owner.name`."""
        if isinstance(owner, Api):
            name = f"{owner.name}.{node.attr}"
            return Api(name, name)
        if isinstance(owner, Instance):
            found = self._classes.member(owner, node.attr)
            if found is not None:
                return found
        if isinstance(owner, Parser):
            return owner.defaults.get(node.attr, Value())
        if isinstance(owner, Tensor) and node.attr == "shape" and owner.shape is not None:
            return Known(repr(owner.shape), owner.shape)
        return as_value(member_text(owner, node.attr))

    def call(self, node: ast.Call, scope: Scope) -> Value:
        """A call, with what it makes the reading know."""
        arguments = self._arguments(node, scope)
        if isinstance(node.func, ast.Attribute):
            owner = self._reading.value(node.func.value, scope)
            found = self._of_value(owner, node, arguments)
            if found is not None:
                return found
            function = self.attribute(owner, node.func, scope)
        else:
            function = self._reading.value(node.func, scope)
        return self.apply(function, arguments, node)

    def apply(self, function: Value, arguments: Arguments, node: ast.Call) -> Value:
        """A function or a class that is called."""
        positional, keywords = arguments
        code = call_text(text(function), positional, keywords)
        if isinstance(function, Network):
            return self._network_called(function, arguments, node)
        if isinstance(function, Instance):
            return Output("output") if function.code == "model" else Value()
        if isinstance(function, Loss):
            return Scalar(
                call_text(function.code, positional, keywords), function.kind, node.lineno
            )
        if isinstance(function, Gradient):
            return self._gradient_called(function, arguments, node)
        if isinstance(function, Api):
            return self._api_called(function.name, arguments, node, code)
        if isinstance(function, Method):
            owner = [function.owner] if function.owner is not None else []
            scope = (
                function.owner.definition.scope
                if function.owner and function.owner.definition
                else None
            )
            return self._reading.run(function.node, scope, [*owner, *positional], keywords)
        if isinstance(function, Defined):
            return self._defined_called(function, arguments, node, code)
        if text(function) in _THROUGH and positional:
            return self._through(text(function), positional[0])
        if text(function) in ("enumerate", "zip"):
            items = [self._reading.iterated(value) for value in positional]
            if text(function) == "enumerate":
                items = [Known("0", 0), *items[:1]]
            return Data(None, Parts(None, items), True)
        if text(function) == "range":
            return Data(None, Known("0", 0), True)
        return as_value(code)

    def _through(self, function: str | None, value: Value) -> Value:
        if function == "next" and isinstance(value, Data):
            return value.item
        return value

    def _arguments(self, node: ast.Call, scope: Scope) -> Arguments:
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        for part in node.args:
            if isinstance(part, ast.Starred):
                inner = self._reading.value(part.value, scope)
                positional += self._spread(inner)
            else:
                positional.append(self._reading.value(part, scope))
        for keyword in node.keywords:
            value = self._reading.value(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Parts) and value.keys is not None:
                keywords.update({str(k): v for k, v in zip(value.keys, value.items, strict=True)})
            elif isinstance(value, Known) and isinstance(value.value, dict):
                keywords.update({str(k): Known(repr(v), v) for k, v in value.value.items()})
        return positional, keywords

    @staticmethod
    def _spread(value: Value) -> list[Value]:
        if isinstance(value, Parts) and value.keys is None:
            return value.items
        if isinstance(value, Known) and isinstance(value.value, (list, tuple)):
            return [Known(repr(part), part) for part in value.value]
        return [Value()]

    # Methods of what is known

    def _of_value(self, owner: Value, node: ast.Call, arguments: Arguments) -> Value | None:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if isinstance(owner, Scalar):
            return self._of_scalar(owner, name, node)
        if isinstance(owner, Network) and name in _ITSELF:
            return owner
        if isinstance(owner, Tensor):
            return self._of_tensor(owner, name, arguments, node)
        if isinstance(owner, Data):
            return self._of_data(owner, name, arguments)
        if isinstance(owner, Parser):
            return parsers.method(owner, name, arguments)
        if isinstance(owner, Known):
            return self._of_known(owner, name, arguments)
        if isinstance(owner, Network) and owner.definition is not None:
            return self._of_network(owner, name, arguments)
        if isinstance(owner, Output) and name == "backward":
            self._reading.found.losses.append(Scalar(owner.code, "", node.lineno))
        if isinstance(owner, Output) and name in _REDUCTIONS and not any(arguments):
            return Scalar(call_text(member_text(owner, name), (), {}), "", node.lineno)
        if name == "scale" and arguments[0] and isinstance(arguments[0][0], Scalar):
            return arguments[0][0]  # of a gradient scaler
        if name == "backward" and arguments[0] and isinstance(arguments[0][0], Scalar):
            self._reading.found.losses.append(arguments[0][0])  # of an accelerator
        return None

    def _of_network(self, owner: Network, name: str, arguments: Arguments) -> Value | None:
        """A method of the user's network, such as one that makes its optimizer."""
        assert owner.definition is not None
        method = self._classes.method_of(owner.definition, (name,))
        if method is None:
            return None
        count = len(self._reading.found.optimizers)
        found = self._reading.run(
            method, owner.definition.scope, [owner, *arguments[0]], arguments[1]
        )
        if not isinstance(found, (Optimizer, Scalar)):
            return None
        found = dataclasses.replace(found, code=call_text(f"model.{name}", *arguments))
        if isinstance(found, Optimizer):
            self._reading.found.optimizers[count:] = [found]
        return found

    def _of_scalar(self, owner: Scalar, name: str, node: ast.Call) -> Value | None:
        if name == "backward":
            self._reading.found.losses.append(owner)
            return Known("None", None)
        if name in _ITSELF:
            return owner
        if name in _REDUCTIONS and not node.args and not node.keywords:
            return dataclasses.replace(owner, code=call_text(member_text(owner, name), (), {}))
        return None

    def _of_tensor(
        self, owner: Tensor, name: str, arguments: Arguments, node: ast.Call
    ) -> Value | None:
        positional, keywords = arguments
        if name in _REDUCTIONS and not positional and not keywords:
            return Scalar(call_text(member_text(owner, name), (), {}), "", node.lineno)
        changed = tensors.method(owner, name, positional, keywords)
        if changed is None:
            return as_value(call_text(member_text(owner, name), positional, keywords))
        return changed if changed.code == owner.code else self._reading.note_tensor(changed)

    def _of_data(self, owner: Data, name: str, arguments: Arguments) -> Value | None:
        if name == "batch" and arguments[0] and isinstance(arguments[0][0], Known):
            return self._batched(owner, arguments[0][0].value)
        if name in ("create_tuple_iterator", "create_dict_iterator", "shuffle", "map", "repeat"):
            return owner
        return owner if name in ("get_dataset_size", "prefetch", "project") else None

    @staticmethod
    def _of_known(owner: Known, name: str, arguments: Arguments) -> Value | None:
        if isinstance(owner.value, dict) and name in ("items", "keys", "values", "get"):
            if name == "get" and arguments[0] and isinstance(arguments[0][0], Known):
                found = owner.value.get(arguments[0][0].value)
                return Known(repr(found), found)
            values = list(getattr(owner.value, name)()) if name != "get" else []
            return Known(repr(values), values)
        return None

    # Calls

    def _network_called(self, network: Network, arguments: Arguments, node: ast.Call) -> Value:
        from isograd.init.scopes import NetworkCall

        call = NetworkCall(network, *arguments, node.lineno)
        self._reading.found.calls.append(call)
        return Output("output")

    def _gradient_called(self, function: Gradient, arguments: Arguments, node: ast.Call) -> Value:
        result = self.apply(function.function, arguments, node)
        first = self._reading.part(result, 0) if isinstance(result, Parts) else result
        if isinstance(first, Scalar):
            self._reading.found.losses.append(first)
        return Parts(None, [result, Value()])

    def _api_called(
        self, name: str, arguments: Arguments, node: ast.Call, code: str | None
    ) -> Value:
        apis, positional = self._apis, arguments[0]
        kind = apis.loss_kind(name)
        if kind:
            if name.rpartition(".")[2][:1].isupper():
                return Loss(code, kind)
            return Scalar(code, kind, node.lineno)
        if apis.is_optimizer(name):
            found = Optimizer(code, node.lineno)
            self._reading.found.optimizers.append(found)
            return found
        if apis.is_scheduler(name):
            self._reading.found.schedulers.append(node.lineno)
            return Value()
        if apis.is_wrapper(name) and positional:
            return positional[0]
        if apis.is_module(name):
            built = call_text(name, *arguments, is_built=True)
            return self._new_network(built, None, node, arguments)
        return self._other_api(name, arguments, node, code)

    def _other_api(
        self, name: str, arguments: Arguments, node: ast.Call, code: str | None
    ) -> Value:
        positional, keywords = arguments
        last = name.rpartition(".")[2]
        if self._apis.filling(name) not in ("", "like"):
            made = tensors.made(self._apis.filling(name), positional, keywords, node.lineno)
            if self._apis.filling(name) == "same" and positional:
                if isinstance(positional[0], Known):
                    made.code = code  # a constant of the program, such as the weights of classes
            return made if made.code else self._reading.note_tensor(made)
        if name == "argparse.ArgumentParser":
            return Parser()
        if last in ("value_and_grad", "grad") and positional:
            return Gradient(None, positional[0])
        if name in ("mindspore.nn.WithLossCell", "mindspore.Model", "mindspore.train.Model"):
            self._wrapped(name, arguments, node)
            return Value()
        if last in _REDUCTIONS and len(positional) == 1 and not keywords:
            if isinstance(positional[0], (Output, Tensor)):
                return Scalar(code, "", node.lineno)
        if name in _THROUGH and positional:
            return positional[0]
        if self._apis.filling(name) == "like" and positional and isinstance(positional[0], Tensor):
            return self._reading.note_tensor(dataclasses.replace(positional[0], line=node.lineno))
        data = self._data_api(name, last, arguments, node)
        return as_value(code) if data is None else data

    def _data_api(self, name: str, last: str, arguments: Arguments, node: ast.Call) -> Value | None:
        """A data set or a loader."""
        positional, keywords = arguments
        if (known := self._apis.dataset(name)) is not None:
            return self._known_dataset(*known, node.lineno)
        if last in ("DataLoader", "GeneratorDataset") and (positional or keywords):
            return self._loader(arguments)
        if last in ("TensorDataset", "NumpySlicesDataset"):
            item = positional if last == "TensorDataset" else self._slices(positional)
            return Data(None, Parts(None, [tensors.sample(part) for part in item]))
        return None

    @staticmethod
    def _slices(positional: list[Value]) -> list[Value]:
        first = positional[0] if positional else Value()
        return first.items if isinstance(first, Parts) else [first]

    def _known_dataset(self, shape: tuple[int, ...], classes: int, line: int) -> Data:
        image = Tensor(shape=shape, line=line)
        label = Tensor(shape=(), dtype="int64", fill="integers", low=0, high=classes, line=line)
        return Data(None, Parts(None, [image, label]))

    def _loader(self, arguments: Arguments) -> Value:
        positional, keywords = arguments
        data = positional[0] if positional else keywords.get("dataset", keywords.get("source"))
        size = positional[1] if len(positional) > 1 else keywords.get("batch_size")
        if not isinstance(data, Data):
            return Data(None, self._reading.placeholder(), True)
        return self._batched(data, size.value if isinstance(size, Known) else 1)

    def _batched(self, data: Data, size: Any) -> Data:
        if data.is_batched or not isinstance(size, int):
            return data
        return Data(None, self._batch_of(data.item, size), True)

    def _batch_of(self, item: Value, size: int) -> Value:
        if isinstance(item, Parts):
            return Parts(None, [self._batch_of(part, size) for part in item.items], item.keys)
        made = tensors.batch(item, size)
        return made if made.code else self._reading.note_tensor(made)

    def _wrapped(self, name: str, arguments: Arguments, node: ast.Call) -> None:
        """A network and its loss that MindSpore calls by itself: loss(network(data), label)."""
        positional, keywords = arguments
        network = positional[0] if positional else keywords.get("backbone", keywords.get("network"))
        loss = positional[1] if len(positional) > 1 else keywords.get("loss_fn")
        if isinstance(network, Network) and isinstance(loss, (Loss, Defined, Network)):
            self._network_called(network, ([self._reading.placeholder(node.lineno)], {}), node)
            target = self._reading.placeholder(node.lineno)
            found = self.apply(loss, ([Output("output"), target], {}), node)
            if isinstance(found, Scalar):
                self._reading.found.losses.append(found)

    def _new_network(
        self, code: str | None, definition: Defined | None, node: ast.Call, arguments: Arguments
    ) -> Network:
        made = Network(None, code, definition, node.lineno, node, arguments)
        self._reading.found.networks.append(made)
        return made

    # The user's functions and classes

    def _defined_called(
        self, function: Defined, arguments: Arguments, node: ast.Call, code: str | None
    ) -> Value:
        if isinstance(function.node, ast.ClassDef):
            return self._class_called(function, arguments, node, code)
        found = self._reading.run(function.node, function.scope, *arguments)
        if isinstance(found, Network):
            # The call says all that the function's body does, and more shortly.
            construction = found.construction if code is None else code
            return dataclasses.replace(found, construction=construction)
        if isinstance(found, (Optimizer, Loss, Scalar)) and function.code is not None:
            if code is not None and free_names(found.code) <= free_names(code):
                return dataclasses.replace(found, code=code)
        if type(found) is Value and found.code is None:
            return as_value(code)
        return found

    def _class_called(
        self, function: Defined, arguments: Arguments, node: ast.Call, code: str | None
    ) -> Value:
        kind = self._classes.class_kind(function)
        if kind == "module":
            loss = self._classes.loss_of_class(function, arguments)
            if loss is not None:
                return Loss(code, loss.kind)
            built = call_text(function.code, *arguments, is_built=True)
            return self._new_network(built, function, node, arguments)
        made = self._classes.instance(function, arguments)
        if kind == "dataset":
            return self._dataset(made)
        made.code = code
        return made

    def _dataset(self, made: Instance) -> Value:
        assert made.definition is not None
        method = self._classes.method_of(made.definition, ("__getitem__",))
        assert method is not None
        item = self._reading.run(method, made.definition.scope, [made, Known("0", 0)], {})
        return Data(None, item)

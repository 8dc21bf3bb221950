"""What scan knows of the value of an expression, without running it.

None means "not known" throughout; every other value says something that is sure enough to
report.  Values are made once and shared: they are compared by identity where there is only one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import Optional, Union


class Tensor:
    """A tensor; `is_view` where it shares memory with another one that has a name."""

    __slots__ = ("is_view",)

    def __init__(self, is_view: bool = False) -> None:
        self.is_view = is_view


class Plain:
    """Something that is neither a tensor nor leads to one: a number, a string, None, a shape."""

    __slots__ = ("what",)

    def __init__(self, what: str = "") -> None:
        self.what = what


@dataclass(frozen=True, slots=True)
class Api:
    """A thing of torch by its full name, as far as it is written: `torch.nn`, `torch.cat`.

    bound: arguments are already given (functools.partial).
    """

    name: str
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Foreign:
    """A thing of another library, by its full name."""

    name: str


@dataclass(frozen=True, slots=True)
class Made:
    """An instance of a class of torch: a module, an optimizer, a scheduler."""

    api: str


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a class of the project.

    is_guess: one call gives it to a parameter; another may give something else.
    """

    of: ClassInfo
    is_guess: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Super:
    """What `super()` returns in a method of the class."""

    of: ClassInfo


@dataclass(frozen=True, slots=True)
class Items:
    """A list, tuple, set or iterator; parts where each position is known, names where named."""

    item: Value
    parts: tuple[Value, ...] | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dictionary, by the values that it holds; numbers: the keys written out with a number."""

    item: Value
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Returns:
    """Something callable of which only the result is known."""

    value: Value


@dataclass(frozen=True, slots=True)
class Differentiated:
    """What returns a function's own result, and gradients beside it: `ms.value_and_grad(f)`."""

    of: FunctionInfo


@dataclass(frozen=True, slots=True)
class Namespace:
    """A module of the project, by its dotted name."""

    name: str


class Scope(dict[str, "Value"]):
    """Names and their values; what is not here is looked up around it, and may be unknown."""

    __slots__ = ("outer",)

    def __init__(self, outer: Scope | None) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, name: str) -> Value:
        outer = self.outer
        return None if outer is None else outer[name]

    def copy(self) -> Scope:
        """The same names, with the same ones around them."""
        twin = Scope(self.outer)
        twin.update(self)
        return twin


@dataclass(eq=False, slots=True)
class FunctionInfo:
    """A function of the project; node and scope are dropped once its body was read.

    owner: the class whose method it is.  is_unclear: one of its returns is not known.
    state: 0 not read, 1 being read, 2 read.
    """

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef | None
    scope: Scope | None
    owner: ClassInfo | None = None
    result: Value = None
    is_annotated: bool = False
    is_property: bool = False
    is_unclear: bool = False
    is_static: bool = False
    state: int = 0


@dataclass(eq=False, slots=True)
class ClassInfo:
    """A class of the project.

    bases: values of its bases; attributes: of its instances and of itself; is_module: whether it
    descends from torch's nn.Module. takers: what is derived from it where it is none.
    """

    name: str
    bases: tuple[Value, ...] = ()
    attributes: dict[str, Value] = field(default_factory=dict)
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    is_module: bool = False
    root: str = ""
    node: ast.ClassDef | None = None
    takers: list[ClassInfo] = field(default_factory=list)

    @property
    def is_mixed(self) -> bool:
        """Whether it is a module, or mixed into one."""
        return self.is_module or any(taker.is_module for taker in self.takers)


Value = Optional[  # noqa: UP045  # the names below are defined above it only at run time
    Union[  # noqa: UP007
        Tensor,
        Plain,
        Api,
        Foreign,
        Made,
        Instance,
        Super,
        Items,
        Mapping,
        Returns,
        Differentiated,
        Namespace,
        FunctionInfo,
        ClassInfo,
    ]
]

TENSOR = Tensor()
VIEW = Tensor(is_view=True)
PLAIN = Plain()
#: False, as it is written.
NO = Plain("no")
#: A number or a shape that depends on the contents of a tensor.
COMPUTED = Plain("computed")
#: An array of numpy's, whose methods have names of a tensor's.
ARRAY = Foreign("numpy.ndarray")
#: The shape of a tensor, or its size.
SHAPE = Plain("shape")
#: A registered parameter or buffer; a tensor of truth values; one whose shape depends on values.
PARAMETER = Tensor()
MASK = Tensor()
#: `~x` of a tensor: truth values, most of all; integers where x is.
INVERTED = Tensor()
#: What picks elements where it stands as an index.
MASKS = frozenset((MASK, INVERTED))
RAGGED = Tensor()
#: Indices of which nobody knows how many elements they take.
SELECTING = MASKS.union((RAGGED,))
TENSORS = Items(TENSOR)
ANY_MODULE = Made("torch.nn.Module")
SOME_ITEMS = Items(None)


def join(first: Value, second: Value) -> Value:
    """What is known of a value that comes from either of two places.

    The known wins over the unknown and a tensor over None or a number: the aim is to find what a
    line may call, and a wrong guess needs two kinds of objects that share a method name.
    """
    if first is second or second is None or second == first:
        return first
    if first is None:
        return second
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return TENSOR
    if isinstance(first, Plain):
        if isinstance(second, Plain):
            return COMPUTED if COMPUTED in (first, second) else PLAIN
        return second
    if isinstance(second, Plain):
        return first
    if isinstance(first, Items) and isinstance(second, Items):
        return _join_items(first, second)
    if isinstance(first, (Made, Instance)) and isinstance(second, (Made, Instance)):
        return _join_instances(first, second)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return Mapping(join(first.item, second.item), first.numbers | second.numbers)
    return None


def _join_items(first: Items, second: Items) -> Items:
    item = join(first.item, second.item)
    if first.parts and second.parts and len(first.parts) == len(second.parts):
        parts = tuple(join(a, b) for a, b in zip(first.parts, second.parts, strict=True))
        return Items(item, parts, first.names if first.names == second.names else ())
    return Items(item)


def _join_instances(first: Made | Instance, second: Made | Instance) -> Value:
    if is_module(first) and is_module(second):
        return ANY_MODULE
    return None


def is_module(value: Value) -> bool:
    """Whether it is an instance of a class of torch's or the project's modules."""
    if isinstance(value, Instance):
        return value.of.is_mixed
    return isinstance(value, Made) and not value.api.startswith(
        ("torch.optim", "torch.amp", "torch.distributions")
    )


def join_all(values: Many[Value]) -> Value:
    """`join` over many; None of no value."""
    found: Value = None
    for value in values:
        found = join(found, value)
    return found


#: What iterating over containers of parameters gives; over dictionaries, names.
_OF_PARAMETERS: dict[str, Value] = {
    "torch.nn.ParameterList": PARAMETER,
    "torch.nn.ParameterDict": None,
}


def element(value: Value) -> Value:
    """What iterating over the value, or indexing it by a number, gives."""
    if isinstance(value, Items):
        return value.item
    if isinstance(value, Tensor):
        return VIEW
    if isinstance(value, Plain):
        return value if value is COMPUTED else PLAIN
    if isinstance(value, (Made, Instance)) and is_module(value):
        if isinstance(value, Made) and value.api in _OF_PARAMETERS:
            return _OF_PARAMETERS[value.api]
        if isinstance(value, Made) and value.api != "torch.nn.Module":
            return ANY_MODULE
        return None
    return None


def part(value: Value, position: int) -> Value:
    """The element at a constant position."""
    if isinstance(value, Items) and value.parts is not None:
        if -len(value.parts) <= position < len(value.parts):
            return value.parts[position]
    return element(value)

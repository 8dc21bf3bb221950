"""What Python's own functions return for values of which something is known."""

from __future__ import annotations

from collections.abc import Callable

from isograd.scan.values import (
    COMPUTED,
    PLAIN,
    SOME_ITEMS,
    TENSOR,
    Api,
    ClassInfo,
    FunctionInfo,
    Items,
    Mapping,
    Returns,
    Tensor,
    Value,
    element,
    join_all,
)

Call = Callable[[list[Value], dict[str, Value]], Value]


def _number(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """`int(x)`: computed where x is a tensor or computed."""
    first = arguments[0] if arguments else PLAIN
    return COMPUTED if first is COMPUTED or isinstance(first, Tensor) else PLAIN


def _same(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return arguments[0] if arguments else None


def _listed(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    if not arguments:
        return SOME_ITEMS
    first = arguments[0]
    return first if isinstance(first, Items) else Items(element(first))


def _unordered(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return Items(element(arguments[0])) if arguments else None


def _zip(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    parts = tuple(element(value) for value in arguments)
    return Items(Items(join_all(parts), parts))


def _enumerate(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    inner = element(arguments[0]) if arguments else None
    return Items(Items(None, (PLAIN, inner)))


def _map(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    function = arguments[0] if arguments else None
    return Items(function.value if isinstance(function, Returns) else None)


def _filter(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return Items(element(arguments[1])) if len(arguments) > 1 else SOME_ITEMS


def _greatest(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    found = arguments if len(arguments) > 1 else [element(value) for value in arguments]
    if any(isinstance(value, Tensor) for value in found):
        return TENSOR
    return COMPUTED if COMPUTED in found else PLAIN


def _sum(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return element(arguments[0]) if arguments else None


def _partial(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    """`functools.partial(f, …)` returns what f returns."""
    first = arguments[0] if arguments else None
    if isinstance(first, Api):
        return Api(first.name, bound=True)
    return first if isinstance(first, (ClassInfo, FunctionInfo, Returns)) else None


def _dictionary(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    if arguments:
        return arguments[0] if isinstance(arguments[0], Mapping) else None
    return Mapping(join_all(list(keywords.values())))


def _unknown(arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return None


CALLS: dict[str, Call] = {
    "builtins.int": _number,
    "builtins.float": _number,
    "builtins.bool": _number,
    "builtins.round": _number,
    "builtins.abs": _same,
    "builtins.list": _listed,
    "builtins.tuple": _listed,
    "builtins.set": _unordered,
    "builtins.iter": _unordered,
    "builtins.reversed": _unordered,
    "builtins.sorted": _unordered,
    "builtins.next": _sum,
    "builtins.sum": _sum,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.max": _greatest,
    "builtins.min": _greatest,
    "builtins.dict": _dictionary,
    "builtins.eval": _unknown,
    "builtins.type": _unknown,
    "builtins.__import__": _unknown,
    "importlib.import_module": _unknown,
    "collections.OrderedDict": _dictionary,
    "collections.defaultdict": _unknown,
    "collections.namedtuple": _unknown,
    "collections.deque": _listed,
    "copy.copy": _same,
    "copy.deepcopy": _same,
    "functools.partial": _partial,
    "functools.reduce": _unknown,
    "itertools.chain": _unknown,
    "operator.attrgetter": _unknown,
    "pickle.load": _unknown,
    "pickle.loads": _unknown,
    "queue.Queue": _unknown,
    "multiprocessing.Queue": _unknown,
    "dataclasses.field": _unknown,
    "dataclasses.replace": _same,
    "typing.TypeVar": _unknown,
    "contextlib.nullcontext": _same,
}

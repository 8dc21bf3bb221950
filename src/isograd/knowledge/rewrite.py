"""From a call of torch to MindSpore's: arguments bound by torch's signature, a template filled.

A template is MindSpore's expression with torch's arguments in braces:

    {name}            the argument's source, or torch's default where it is not given
    {*shape}          all of a `*shape` parameter as given; {shape} is the same as one tuple
    {, **lengths}     all of a `**lengths` parameter as given, else nothing
    {, axis=dim}      `, axis=…` where torch's `dim` is given, else nothing; also {, dim}
    {dtype!}          as {dtype}, and the template fits only where it is given
    {size:int}        as {size}, and the template fits integers written out alone
    {modules:list}    as {modules}, and the template fits lists written out alone
    {start:below}     as {start}, and the template fits what has a minus before it alone
    {edges:whole}     as {edges}, and the template fits integers from 0 written out alone, or a
                      tuple of them
    {sizes:tuple}     as {sizes}, and the template fits tuples written out, or several `*sizes`
    {value:number}    as {value}, and the template fits numbers written out alone, `float('-inf')`
    {input:path}      as {input}, and the template fits names and attributes of names
    {size:plain}      as {size}, and the template fits names, numbers, tuples of them, and what only
                      computes from them: their source may stand twice
    {tensor:param}    as {tensor}, and the template fits names of Parameters alone (`m.weight`)
    {a~b}             nothing, and the template fits only where `a` is `-b`
    {self}            the receiver of a method

An entry without a template but with a target is a call of the target, its arguments renamed by
`arguments` (or under their own names where that is empty).  An argument is never dropped
silently: a template that has no place for it does not fit, unless it equals torch's default or
stands in `arguments` with an empty name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache

from isograd.knowledge.entry import Entry
from isograd.knowledge.fitting import FITS, expression, is_negated, is_plain
from isograd.knowledge.older_overloads import take_factors

#: What the first name of a template means; who writes the code imports it.
PACKAGES = {
    "ms": "mindspore",
    "nn": "mindspore.nn",
    "ops": "mindspore.ops",
    "mint": "mindspore.mint",
    "optim": "mindspore.experimental.optim",
    "amp": "mindspore.amp",
    "ds": "mindspore.dataset",
    "transforms": "mindspore.dataset.transforms",
    "vision": "mindspore.dataset.vision",
    "communication": "mindspore.communication",
    "comm": "mindspore.communication.comm_func",
    "initializer": "mindspore.common.initializer",
    "np": "numpy",
    "collections": "collections",
    "composites": "isograd.runtime",
}
#: Arguments of torch that nothing of MindSpore takes under the same name.
_NOT_SHARED = frozenset("out generator size_average reduce inplace".split()) | {"self"}
_OLDER_REDUCTIONS = ("size_average", "reduce")
#: Arguments without a meaning in MindSpore, which places, lays out and fuses by itself.
WITHOUT_MEANING = frozenset(
    "device device_type layout pin_memory memory_format non_blocking foreach fused capturable "
    "differentiable _stacklevel stacklevel".split()
)
#: numpy's names, which torch takes for its own, and the names of overloads that say less.
SYNONYMS = {
    "axis": ("dim", "dims"), "keepdims": ("keepdim",), "x": ("input", "self"), "x2": ("other",),
    "indices": ("indices_or_sections",), "sections": ("indices_or_sections",),
    "split_size": ("split_size_or_sections",), "split_sizes": ("split_size_or_sections",),
    "value": ("src",),
}  # fmt: skip
PLACE = re.compile(
    r"\{(?P<optional>, )?(?:(?P<key>\w+)=)?(?P<star>\*{1,2})?(?P<name>\w+)"
    r"(?:~(?P<negated>\w+))?"
    r"(?P<given>!)?(?P<int>:int)?(?P<list>:list)?(?P<param>:param)?(?P<plain>:plain)?"
    r"(?P<whole>:whole)?(?P<below>:below)?(?P<tuple>:tuple)?(?P<number>:number)?(?P<path>:path)?\}"
)
#: What needs no brackets wherever it stands.
ATOMS = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.Constant,
)
#: Where an expression of several parts needs none either, if it is on one line.
ROOMY = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Return,
    ast.Expr,
    ast.keyword,
    ast.Call,
)


@lru_cache(maxsize=4096)
def is_closed(code: str) -> bool:
    """Whether an expression stays one beside any operator: an atom, or in brackets as a whole."""
    made = expression(code)
    if made is None:
        return False
    if isinstance(made, ATOMS):
        return True
    if not (code.startswith("(") and code.endswith(")")):
        return False
    if isinstance(made, ast.Tuple) and not made.elts:
        return True
    inner = expression(code[1:-1])  # of `(a) - (b)`, `a) - (b`: none
    return inner is not None and ast.dump(inner) == ast.dump(made)


def operand(code: str) -> str:
    """An expression as it stands beside an operator or before a dot, in brackets if it needs them.

    What is asked is the code itself: `(a) - (b)` begins with a bracket and needs them.
    """
    return code if is_closed(code) else f"({code})"


@dataclass(frozen=True)
class Call:
    """A call's arguments as source text; a starred one keeps its star.

    integers: the texts that are known to be integers, beside numbers written out.  parameters:
    those that name a Parameter, and cost nothing to name again (`m.weight`).  computations: those
    that only compute, so that they may be written twice (`math.sqrt(2 / n)`).
    """

    positional: tuple[str, ...] = ()
    keywords: Mapping[str, str] = field(default_factory=dict)
    receiver: str = ""
    integers: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    computations: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rewritten:
    """MindSpore's expression, and torch's arguments that were dropped on purpose.

    is_runtime: whether it is a call of the runtime, not of MindSpore's own.
    """

    code: str
    dropped: tuple[str, ...] = ()
    is_runtime: bool = False


@dataclass(frozen=True)
class NotRewritten:
    """Why a person has to write this call; argument: the one without counterpart, if it is one."""

    reason: str
    argument: str = ""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a signature; default: its source, or None where it has to be given."""

    name: str
    default: str | None
    kind: str  # "positional", "many", "keyword" or "keywords"


@cache
def parameters_of(signature: str) -> tuple[Parameter, ...]:
    """The parameters of a signature such as `(input, *sizes, dtype=None)`.

    Raises SyntaxError where it is none.
    """
    parsed = ast.parse(f"def f{signature}: pass").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    given = parsed.args
    names = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(names) - len(given.defaults))
    defaults += given.defaults
    found = [_parameter(a, d, "positional") for a, d in zip(names, defaults, strict=True)]
    if given.vararg:
        found.append(Parameter(given.vararg.arg, "()", "many"))
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    found += [_parameter(a, d, "keyword") for a, d in pairs]
    if given.kwarg:
        found.append(Parameter(given.kwarg.arg, "{}", "keywords"))
    return tuple(found)


def _parameter(argument: ast.arg, default: ast.expr | None, kind: str) -> Parameter:
    return Parameter(argument.arg, None if default is None else ast.unparse(default), kind)


def call_of(node: ast.Call, receiver: str = "") -> Call | NotRewritten:
    """A call's arguments from its syntax tree."""
    keywords = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            return NotRewritten(f"the arguments in **{ast.unparse(keyword.value)} are not known")
        keywords[keyword.arg] = ast.unparse(keyword.value)
    return Call(tuple(ast.unparse(part) for part in node.args), keywords, receiver)


_OPERATORS = "+-*/%@"


def rewrite(entry: Entry, call: Call) -> Rewritten | NotRewritten:
    """MindSpore's expression for a call of torch, or which argument has no counterpart."""
    if not entry.rewrite and not entry.target:
        return NotRewritten(f"{entry.api} has no counterpart that could be written in its place")
    bound = bind(entry, call)
    if isinstance(bound, NotRewritten):
        return bound
    result = _written(entry, bound, call)
    newer = _with_reduction(bound)
    if isinstance(result, NotRewritten) and newer is not None:
        again = _written(entry, newer, call)
        return again if isinstance(again, Rewritten) else result
    return result


def _written(
    entry: Entry, bound: Mapping[str, str | list[str]], call: Call
) -> Rewritten | NotRewritten:
    """The target, or the first template that fits, or why the first of all does not."""
    if not entry.rewrite:
        return _renamed(entry, bound)
    results = (_filled(entry, template, bound, call) for template in (entry.rewrite, *entry.others))
    failure: NotRewritten | None = None
    for result in results:
        if isinstance(result, Rewritten):
            return result
        failure = failure or result
    assert failure is not None
    return failure


def _with_reduction(
    bound: Mapping[str, str | list[str]],
) -> dict[str, str | list[str]] | None:
    """A loss's arguments with `reduction` for the older `size_average` and `reduce`.

    None where there are none, or where they are no constants.  What they mean together is from
    torch.nn._reduction.legacy_get_string.
    """
    given = {name: bound[name] for name in _OLDER_REDUCTIONS if name in bound}
    if not given or any(value not in ("True", "False", "None") for value in given.values()):
        return None
    newer = {name: value for name, value in bound.items() if name not in given}
    if given.get("reduce") == "False":
        newer["reduction"] = "'none'"
    elif given.get("size_average") == "False":
        newer["reduction"] = "'sum'"
    else:
        newer.pop("reduction", None)  # torch's default, the mean
    return newer


def reference(entry: Entry) -> str:
    """MindSpore's name for an API that is named without a call (`torch.float32`, `F.relu`).

    It takes torch's arguments: as a value, in `partial`, as a base class.  Empty where nothing
    does, so that the name alone would be wrong.
    """
    if entry.value:
        return entry.value
    if entry.rewrite and not entry.signature:
        return entry.rewrite
    return ""


def class_of(entry: Entry) -> str:
    """The class that stands in an isinstance, an issubclass or an annotation; empty: none does."""
    return entry.instance or reference(entry)


def bind(entry: Entry, call: Call) -> dict[str, str | list[str]] | NotRewritten:
    """The arguments of a call by torch's parameter names; a `*` parameter's as a list.

    Arguments that are not given, or equal torch's default, are absent.
    """
    parameters = parameters_of(entry.signature or "()")
    bound: dict[str, str | list[str]] = {}
    ordered = [p for p in parameters if p.kind in ("positional", "many")]
    values = list(call.positional)
    if call.receiver:
        values.insert(0, call.receiver)
    if len(values) > len(ordered):
        by_position = [p.name for p in ordered]
        bound |= take_factors(values, by_position, {p.name for p in parameters} - {*by_position})
    if values and not entry.signature:
        return NotRewritten(f"a call of {entry.api} with arguments is not converted", values[0])
    while values:
        if not ordered:
            return NotRewritten(f"{entry.api} takes fewer positional arguments", values[0])
        parameter = ordered.pop(0)
        if parameter.kind == "many":
            bound[parameter.name] = values
            break
        value = values.pop(0)
        if value.startswith("*"):
            return NotRewritten(f"the arguments in {value} are not known", parameter.name)
        bound[parameter.name] = value
    return _with_keywords(entry, call, parameters, bound)


def _with_keywords(
    entry: Entry,
    call: Call,
    parameters: tuple[Parameter, ...],
    bound: dict[str, str | list[str]],
) -> dict[str, str | list[str]] | NotRewritten:
    by_name = {p.name: p for p in parameters}
    for name, value in call.keywords.items():
        others = (by_name.get(other) for other in SYNONYMS.get(name, ()))
        parameter = by_name.get(name) or next(filter(None, others), None)
        if parameter is None:
            if name in WITHOUT_MEANING:
                bound[name] = value
                continue
            if parameters and parameters[-1].kind == "keywords":
                _more(bound, parameters[-1].name).append(f"{name}={value}")
                continue
            return NotRewritten(f"{entry.api} is not known to take {name}", name)
        bound[parameter.name] = [value] if parameter.kind == "many" else value
    for name, known in by_name.items():
        if name in bound and known.default is not None and bound[name] == known.default:
            del bound[name]
    for parameter in parameters:
        needed = parameter.default is None and parameter.name not in bound
        if needed and not (entry.others or parameter.kind in ("many", "keywords")):
            return NotRewritten(f"{entry.api} is called without {parameter.name}", parameter.name)
    return bound


def _more(bound: dict[str, str | list[str]], name: str) -> list[str]:
    """The list of a `**` parameter's arguments."""
    found = bound.setdefault(name, [])
    assert isinstance(found, list)
    return found


def _filled(
    entry: Entry, template: str, bound: Mapping[str, str | list[str]], call: Call
) -> Rewritten | NotRewritten:
    places = {found["name"] for found in PLACE.finditer(template)}
    dropped = _unplaced(entry, bound, places)
    if isinstance(dropped, NotRewritten):
        return dropped
    defaults = {p.name: p.default for p in parameters_of(entry.signature or "()")}
    for found in PLACE.finditer(template):
        failure = _unfit(entry, found, bound, defaults, call)
        if failure is not None:
            return failure

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        value = bound.get(name)
        if found["negated"]:
            return ""
        if found["optional"]:
            if value is None:
                return ""
            text = ", ".join(value) if found["star"] and isinstance(value, list) else _one(value)
            return f", {found['key']}={text}" if found["key"] else f", {text}"
        value = value if value is not None else str(defaults[name])
        if found["star"]:
            return ", ".join(value) if isinstance(value, list) else value
        text = _one(value)
        if _stands_alone(found) or _is_atom(text) or _is_plain_number(text, found):
            return text
        return f"({text})"

    return Rewritten(PLACE.sub(fill, template), dropped)


def _unfit(
    entry: Entry,
    found: re.Match[str],
    bound: Mapping[str, str | list[str]],
    defaults: Mapping[str, str | None],
    call: Call,
) -> NotRewritten | None:
    """Why an argument does not fit its place; None where it does."""
    name = found["name"]
    is_lacking = found["given"] or defaults.get(name) is None
    if is_lacking and not found["optional"] and name not in bound:
        return NotRewritten(f"{entry.api} is called without {name}", name)
    given = _one(bound.get(name, str(defaults.get(name))))
    if found["int"] and not (given.isdecimal() or given in call.integers):
        return NotRewritten(f"{name} of {entry.api} is no written-out number", name)
    for kind, (fits, reason) in FITS.items():
        if found[kind] and not fits(given):
            return NotRewritten(f"{name} of {entry.api} {reason}", name)
    if found["tuple"] and found["star"] and len(bound[name]) == 1:
        return NotRewritten(f"{name} of {entry.api} are one argument", name)
    if found["plain"] and not (is_plain(given) or given in call.computations):
        return NotRewritten(f"{name} of {entry.api} is no name and no number", name)
    if found["param"] and given not in call.parameters:
        return NotRewritten(f"{name} of {entry.api} is not known to be a Parameter", name)
    if found["negated"] and not is_negated(given, _one(bound.get(found["negated"], ""))):
        return NotRewritten(f"{name} of {entry.api} is not -{found['negated']}", name)
    if bound.get(name) == "None" and _is_operand(found):
        return NotRewritten(f"{name} of {entry.api} is None, which is no number", name)
    return None


def _is_operand(found: re.Match[str]) -> bool:
    """Whether a place is one side of an arithmetic operator, as in `1 - {momentum}`."""
    before = found.string[: found.start()].rstrip()[-1:]
    after = found.string[found.end() :].lstrip()[:1]
    return bool(before and before in _OPERATORS) or bool(after and after in _OPERATORS)


def _unplaced(
    entry: Entry, bound: Mapping[str, object], places: set[str]
) -> tuple[str, ...] | NotRewritten:
    """The arguments that are dropped on purpose, unless one has no place and no leave to go."""
    on_purpose = {name for name, target in entry.arguments if not target}
    dropped = []
    for name in bound:
        if name in places:
            continue
        if name not in on_purpose and name not in WITHOUT_MEANING:
            return NotRewritten(f"{name} of {entry.api} has no counterpart in MindSpore", name)
        dropped.append(name)
    return tuple(dropped)


def _renamed(entry: Entry, bound: Mapping[str, str | list[str]]) -> Rewritten | NotRewritten:
    names = dict(entry.arguments)
    parameters = parameters_of(entry.signature or "()")
    if not names:
        names = {p.name: p.name for p in parameters if p.name not in _NOT_SHARED}
    dropped = _unplaced(entry, bound, {name for name, target in names.items() if target})
    if isinstance(dropped, NotRewritten):
        return dropped
    parts: list[str] = []
    in_order = True
    for parameter in parameters:
        value = bound.get(parameter.name)
        if value is None or parameter.name in dropped:
            in_order = False
        elif isinstance(value, list):
            parts += value
        else:
            in_order = in_order and parameter.kind == "positional" and parameter.default is None
            parts.append(value if in_order else f"{names[parameter.name]}={value}")
    return Rewritten(f"{short_name(entry.target)}({', '.join(parts)})", dropped)


def short_name(target: str) -> str:
    """A MindSpore name as templates write it: `mindspore.ops.abs` as `ops.abs`."""
    for short, full in sorted(PACKAGES.items(), key=lambda item: -len(item[1])):
        if target.startswith(f"{full}."):
            return f"{short}.{target[len(full) + 1 :]}"
    return target


def _one(value: str | list[str]) -> str:
    """A `*` parameter's arguments as one expression: a tuple, or the only one as it is."""
    if isinstance(value, str):
        return value
    if len(value) == 1:
        return f"tuple({value[0][1:]})" if value[0].startswith("*") else value[0]
    return f"({', '.join(value)})"


def _stands_alone(found: re.Match[str]) -> bool:
    """Whether the place is a whole argument, element or subscript, which needs no brackets."""
    before = found.string[: found.start()].rstrip()
    after = found.string[found.end() :].lstrip()
    opened = before.endswith(("(", "[", ",", "=")) and not before.endswith(("==", "!="))
    return opened and (after.startswith((")", "]", ",", "{, ")) or not after)


def _is_plain_number(text: str, found: re.Match[str]) -> bool:
    """Whether a number needs no brackets: nothing is called on it, and it has no sign."""
    follows = found.string[found.end() : found.end() + 1]
    return text[:1].isdigit() and text.replace(".", "").isalnum() and follows not in (".", "[")


@lru_cache(maxsize=4096)
def _is_atom(text: str) -> bool:
    node = expression(text)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Tuple):
        return text.startswith("(") and text.endswith(")")
    return isinstance(node, ATOMS)

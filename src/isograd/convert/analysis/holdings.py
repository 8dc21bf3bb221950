"""Which layers and modules an expression may hold, by what all files of a project bind.

The answer is None where anything else may be there.  A class that a parameter brings counts as the
one that it has by default and those that the project gives to parameters of its name.  What is set
from outside by names that are computed is not seen, as with all that is known of attributes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from isograd.convert.analysis.terms import (
    CONTAINERS,
    Called,
    Element,
    Holding,
    Known,
    Member,
    OfClass,
    Own,
    Parameter,
    Row,
    Several,
    Term,
)
from isograd.scan.names import torch_names
from isograd.scan.values import Api, ClassInfo, FunctionInfo, Instance, Made

#: What an expression may hold.
HeldValue = Made | Instance | Own | Row | Api | ClassInfo | FunctionInfo
_Found = frozenset[HeldValue] | None
#: A term, and whether it is what it may call that is asked.
_Question = tuple[bool, Term]
#: Questions within each other after which anything may be there.
_DEEPEST = 60
_NOTHING: frozenset[HeldValue] = frozenset()
#: Bases whose instances hold no modules but those that a class binds itself.
_MODULE = "torch.nn.Module"
#: Layers of torch's that have parts of their own.
_WITH_PARTS = ("torch.nn.Transformer", "torch.nn.MultiheadAttention", "torch.nn.AdaptiveLogSoftmax")
_ASKED = frozenset(("__getattr__", "__getattribute__", "__setattr__"))


class Holdings:
    """What the files of a project hold together."""

    def __init__(self, files: Iterable[Holding] = ()) -> None:
        self._files = list(files)
        self._known: dict[_Question, _Found] = {}
        self._settled: set[_Question] = set()
        self._asked: set[_Question] = set()
        self._has_changed = False
        self._depth = 0
        self._by_name: dict[str, set[Term]] = {}

    def find(self, term: Term) -> _Found:
        """What a term may hold; None where others may be there."""
        question = (False, term)
        while question not in self._settled:
            self._asked = set()
            self._has_changed = False
            self._ask(question)
            if not self._has_changed:
                self._settled |= self._asked
        return self._known[question]

    def _ask(self, question: _Question) -> _Found:
        """An answer; within a cycle that of the last round, until no round changes any."""
        if question not in self._settled and question not in self._asked:
            self._asked.add(question)
            is_called, term = question
            self._depth += 1
            found = None
            if self._depth < _DEEPEST:
                found = self._callable(term) if is_called else self._value(term)
            self._depth -= 1
            if question not in self._known or self._known[question] != found:
                self._known[question] = found
                self._has_changed = True
        return self._known.get(question, _NOTHING)

    def _of(self, term: Term) -> _Found:
        return self._ask((False, term))

    def _called(self, term: Term) -> _Found:
        """The classes and functions that a term may be."""
        return self._ask((True, term))

    # ---- what the project says

    @cached_property
    def _classes(self) -> dict[ClassInfo, OfClass]:
        return {info: bound for one in self._files for info, bound in one.classes.items()}

    @cached_property
    def _derived(self) -> dict[ClassInfo, list[ClassInfo]]:
        found: dict[ClassInfo, list[ClassInfo]] = defaultdict(list)
        for info in self._classes:
            for base in _ancestors(info):
                found[base].append(info)
        return found

    @cached_property
    def _functions(self) -> dict[FunctionInfo, tuple[tuple[str, ...], Term]]:
        return {info: one for file in self._files for info, one in file.functions.items()}

    @cached_property
    def _given(self) -> dict[str, set[Term]]:
        """What arguments are given, by parameters; "" where the function is not known."""
        found: dict[str, set[Term]] = defaultdict(set)
        for file in self._files:
            for name, terms in file.by_name.items():
                found[name] |= terms
        self._by_name = dict(found)
        for function, index, term in set().union(*(file.by_place for file in self._files)):
            for names in self._targets(function):
                if index < len(names):
                    found[names[index]].add(term)
            if not isinstance(function, Known):
                parts = term.terms if isinstance(term, Several) else (term,)
                found[""] |= {part for part in parts if isinstance(part, Known)}
        return found

    def _targets(self, function: Term) -> list[tuple[str, ...]]:
        """The parameters by place of what may be called, as far as its text shows it."""
        if isinstance(function, Known):
            if isinstance(function.value, FunctionInfo):
                return [self._functions.get(function.value, ((), function))[0]]
            is_class = isinstance(function.value, ClassInfo)
            return self._of_method(function.value, "__init__")[:1] if is_class else []  # type: ignore[arg-type]
        if isinstance(function, Several):
            return [names for one in function.terms for names in self._targets(one)]
        if isinstance(function, Parameter):
            brought = (function.default, *self._by_name.get(function.name, ()))
            return [n for one in brought if isinstance(one, Known) for n in self._targets(one)]
        if isinstance(function, Member) and isinstance(function.owner, Own):
            classes = self._classes_of(function.owner)
            return [n for info in classes for n in self._of_method(info, function.name)]
        if isinstance(function, Member) and isinstance(function.owner, Known):
            value = function.owner.value
            found = self._of_method(value, function.name) if isinstance(value, ClassInfo) else []
            return [("self", *names) for names in found[:1]]
        return []

    def _of_method(self, info: ClassInfo, name: str) -> list[tuple[str, ...]]:
        """The parameters of a class's method by place, then those of its bases'."""
        bound = (self._classes.get(one) for one in (info, *_ancestors(info)))
        return [one.parameters[name][1:] for one in bound if one and name in one.parameters]

    def _bound(self, name: str, held: frozenset[HeldValue]) -> list[Term]:
        """What is given as an attribute to what may be one of these, by anything but its class."""
        bound = [pair for one in self._files for pair in one.others.attributes.get(name, ())]
        return [value for owner, value in bound if self._may_meet(self._of(owner), held)]

    def _may_meet(self, found: _Found, held: frozenset[HeldValue]) -> bool:
        """Whether two expressions may hold the same object."""
        return found is None or any(self._kinds(a) & self._kinds(b) for a in found for b in held)

    def _kinds(self, one: HeldValue) -> set[object]:
        if isinstance(one, (Instance, Own)):
            return set(self._classes_of(one))
        return {one.api if isinstance(one, Made) else type(one)}

    def _put(self, name: str) -> list[Term]:
        return [term for file in self._files for term in file.others.put.get(name, ())]

    # ---- what a term may be

    def _value(self, term: Term) -> _Found:
        if isinstance(term, Known):
            return frozenset((term.value,))
        if isinstance(term, (Own, Row)):
            return frozenset((term,))
        if isinstance(term, Several):
            return _union(map(self._of, term.terms))
        if isinstance(term, Member):
            return self._member(term)
        if isinstance(term, Element):
            return self._element(term)
        if isinstance(term, Called):
            return self._result(term)
        return None

    def _member(self, term: Member) -> _Found:
        owners = self._of(term.owner)
        if owners is None:
            return None
        bound = self._bound(term.name, owners)
        found = [self._member_of(one, term.name, is_bound=bool(bound)) for one in owners]
        return _union((*found, *map(self._of, bound)))

    def _member_of(self, owner: HeldValue, name: str, *, is_bound: bool) -> _Found:
        if isinstance(owner, Row):
            named = [part for key, part in owner.elements if key == name]
            return _union(map(self._of, named)) if named or is_bound else None
        if isinstance(owner, Made):
            return _NOTHING if owner.api != _MODULE and _has_no_parts(owner.api) else None
        if not isinstance(owner, (Instance, Own)):
            return None
        classes = self._classes_of(owner)
        if not all(map(_is_plain, classes)) or not owner.of.is_module:
            return None
        bound = [self._classes[info] for info in classes if info in self._classes]
        if len(bound) < len(classes) or any(name in info.methods for info in classes):
            return None
        terms = [term for one in bound for _, term in one.attributes.get(name, ())]
        terms += [part for one in bound for start, part in one.computed if name.startswith(start)]
        if not terms and any(map(_is_container, classes)):
            return None
        return _union(map(self._of, terms))

    def _classes_of(self, owner: Instance | Own) -> set[ClassInfo]:
        """The classes whose methods may have bound what an instance holds."""
        classes = {owner.of, *_ancestors(owner.of)}
        for info in self._derived.get(owner.of, ()) if isinstance(owner, Own) else ():
            classes |= {info, *_ancestors(info)}
        return classes

    def _element(self, term: Element) -> _Found:
        rows = self._of(term.of)
        if rows is None:
            return None
        found: list[_Found] = []
        for row in rows:
            if not isinstance(row, Row):
                return None
            found += [self._of(part) for _, part in row.elements]
        if isinstance(term.of, Member):
            put = self._put(term.of.name)
            for owner in self._of(term.of.owner) or ():
                if isinstance(owner, (Instance, Own)):
                    bound = (self._classes.get(info) for info in self._classes_of(owner))
                    put += [one for of in bound if of for one in of.put.get(term.of.name, ())]
            found += map(self._of, put)
        return _union(found)

    def _result(self, term: Called) -> _Found:
        if isinstance(term.function, Member):
            owners = self._of(term.function.owner)
            returned = None if owners is None else self._returned(owners, term.function.name)
            if returned is not None:
                return _union(map(self._of, returned))
        called = self._called(term.function)
        if not called or not _brings_class(term.function):
            return None
        return _union(map(self._made, called))

    def _returned(self, owners: frozenset[HeldValue], name: str) -> list[Term] | None:
        """What a method returns; None where others than the project's may be called."""
        found: list[Term] = []
        for owner in owners:
            methods: list[Term] = []
            if isinstance(owner, (Instance, Own)):
                classes = self._classes_of(owner)
                bound = [self._classes[info] for info in classes if info in self._classes]
                methods = [one.methods[name] for one in bound if name in one.methods]
                if not methods and not all(map(_is_plain, classes)):
                    return None
            elif not isinstance(owner, (Made, Row)):
                return None
            if not methods and name in torch_names().module:
                return None
            found += methods
        return found or None

    def _made(self, called: HeldValue) -> _Found:
        if isinstance(called, ClassInfo):
            is_plain = "__new__" not in called.methods and called.is_module
            return frozenset((Instance(called),)) if is_plain else None
        if isinstance(called, FunctionInfo) and called in self._functions:
            return self._of(self._functions[called][1])
        if isinstance(called, Api) and torch_names().kind(called.name) == "M":
            return None if called.name in CONTAINERS else frozenset((Made(called.name),))
        return None

    def _callable(self, term: Term) -> _Found:
        if isinstance(term, Several):
            return _union(map(self._called, term.terms))
        if isinstance(term, Parameter):
            given = {*self._given.get(term.name, ()), *self._given.get("", ())}
            return _union(map(self._called, (term.default or Several(), *given)))
        return self._of(term)


def _brings_class(term: Term) -> bool:
    """Whether anything but arguments is called: the default of a parameter, or a name."""
    if isinstance(term, Several):
        return any(map(_brings_class, term.terms))
    if isinstance(term, Parameter):
        return term.default is not None and _brings_class(term.default)
    return True


def _union(found: Iterable[_Found]) -> _Found:
    values: set[HeldValue] = set()
    for one in found:
        if one is None:
            return None
        values |= one
    return frozenset(values)


def _ancestors(info: ClassInfo) -> list[ClassInfo]:
    """The classes of the project from which one is derived."""
    found = [info]
    for one in found:
        found += [b for b in one.bases if isinstance(b, ClassInfo) and b not in found]
    return found[1:]


def _is_plain(info: ClassInfo) -> bool:
    """Whether what an instance holds is what the project's classes bind."""
    return _ASKED.isdisjoint(info.methods) and all(
        isinstance(base, ClassInfo) or (isinstance(base, Api) and _has_no_parts(base.name))
        for base in info.bases
    )


def _is_container(info: ClassInfo) -> bool:
    return any(isinstance(base, Api) and base.name in CONTAINERS for base in info.bases)


def _has_no_parts(api: str) -> bool:
    """Whether a class of torch's modules brings no modules as attributes."""
    is_of_nn = api.startswith("torch.nn.") and api.count(".") == 2
    return is_of_nn and not api.startswith(_WITH_PARTS)

"""In which mode the project's modules start: what of its files says who else makes them.

torch's modules start in training, MindSpore's cells in inference.  Where a network is made by its
name the call is followed by `set_train()`.  A class that may be made where nothing shows it (it is
in a table, has a decorator, is passed to what is not known, is asked for by a text, or is made by
nobody in the project) starts training at the end of its own constructor.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isograd.convert.analysis.carrying import Carrying
from isograd.convert.analysis.handed_in import Constructor, constructor_of
from isograd.convert.tree import Tree
from isograd.scan.state import Project
from isograd.scan.values import Api, ClassInfo, Foreign, Namespace, Plain, Tensor, Value

#: Functions that give an object by its name, or all that there are.
_LOOKS_UP = frozenset(
    """builtins.globals builtins.locals builtins.eval builtins.exec builtins.__import__
    importlib.import_module inspect.getmembers pydoc.locate pkgutil.resolve_name
    hydra.utils.instantiate hydra.utils.get_class hydra.utils.get_object
    hydra.utils.call""".split()
)
_SUBCLASSES = frozenset(("__subclasses__", "__init_subclass__"))


@dataclass(frozen=True)
class Elsewhere:
    """What one file takes of others.

    names: that it imports, or reads of modules of the project.  escaping: of these, what it passes
    around as a value.
    """

    names: frozenset[str] = frozenset()
    escaping: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Starting:
    """What the files of a project say together.

    taken: the file that takes a name of others or calls a method of this name; empty for several.
    escaping: classes that files other than their own pass around.  made: classes that calls make.
    looks_up: whether something is asked for by a name that is computed.  in_inference: classes that
    start in inference in torch, too.  constructors: of the classes of modules.
    leave_training: the files that may set a module to inference, those that import them, and what
    either imports: what they set may come there.  own_modes: the files with a `train` that leaves a
    part in another mode, and those that may make such a module by what they import.
    """

    taken: Mapping[str, str] = field(default_factory=dict)
    escaping: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    looks_up: bool = False
    in_inference: frozenset[str] = frozenset()
    constructors: Mapping[ClassInfo, Constructor] = field(default_factory=dict)
    leave_training: frozenset[str] = frozenset()
    own_modes: frozenset[str] = frozenset()

    def is_taken(self, name: str, file: str) -> bool:
        """Whether a file other than the given one takes a name, or calls such a method."""
        return self.taken.get(name, file) != file

    def constructor(self, made: Value) -> Constructor:
        """What a class keeps of what its constructor is given."""
        return constructor_of(made, self.constructors)


@dataclass(frozen=True)
class Said:
    """What one file says: its name, what it takes, and the names of the facts of its reading.

    leaves_training: whether it, or a file that it imports, may set a module to inference, or a file
    that does so reaches it by imports.
    """

    file: str
    elsewhere: Elsewhere
    called: Collection[str]
    made: Collection[str]
    in_inference: Collection[str]
    looks_up: bool
    constructors: Mapping[ClassInfo, Constructor]
    leaves_training: bool


def starting_of(files: Iterable[Said]) -> Starting:
    """The facts of a project from those of its files."""
    said = list(files)
    taken: dict[str, str] = {}
    constructors: dict[ClassInfo, Constructor] = {}
    for one in said:
        for name in (*one.elsewhere.names, *one.called):
            taken[name] = "" if taken.get(name, one.file) != one.file else one.file
        constructors |= one.constructors
    return Starting(
        taken,
        frozenset().union(*(one.elsewhere.escaping for one in said)),
        frozenset().union(*(one.made for one in said)),
        any(one.looks_up for one in said),
        frozenset().union(*(one.in_inference for one in said)),
        constructors,
        frozenset(one.file for one in said if one.leaves_training),
    )


def looks_up(node: ast.Call, value: Value, arguments: list[Value]) -> bool:
    """Whether a call asks for an object by a name, or for all there are."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SUBCLASSES:
        return node.func.attr == "__subclasses__"
    if not isinstance(value, Foreign):
        return False
    if value.name == "builtins.getattr" and len(node.args) > 1:
        is_own = isinstance(arguments[0], Namespace) or _is_of_modules(node.args[0])
        return is_own and not isinstance(node.args[1], ast.Constant)
    return value.name in _LOOKS_UP


def asked_modules(node: ast.Call, arguments: list[Value], project: Project) -> set[str]:
    """The project's module that `getattr(module, name)` asks."""
    if getattr(node.func, "id", "") != "getattr" or len(node.args) < 2:
        return set()
    asked = arguments[0]
    if not isinstance(asked, Namespace) or isinstance(node.args[1], ast.Constant):
        return set()
    summary = project.module(asked.name)
    return {asked.name if summary is None else summary.name}


def leaves_training(call: ast.AST) -> bool:
    """Whether a call is `x.eval()` or `x.train(False)`."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    given = [*call.args, *(part.value for part in call.keywords)]
    if call.func.attr == "eval":
        return not given
    is_false = len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False
    return call.func.attr == "train" and is_false


def _is_of_modules(node: ast.expr) -> bool:
    """`sys.modules[name]`."""
    return any(
        isinstance(part, ast.Attribute) and part.attr == "modules" for part in ast.walk(node)
    )


def elsewhere_of(tree: Tree, carrying: Carrying, value_of: Callable[[str], Value]) -> Elsewhere:
    """What a file takes of others.

    carrying: which takes every function for one that others call.  value_of: of a module's names.
    """
    names, modules, is_open = _imported(tree)
    names = {name: real for name, real in names.items() if _may_be_module(value_of(name))}
    modules = {name for name in modules if _may_be_module(value_of(name))}
    reads: list[tuple[str, ast.expr]] = []
    for name, found in carrying.loads.items():
        if name in names or (is_open and _may_be_module(value_of(name))):
            reads += [(names.get(name, name), one) for one in found]
    for attribute, several in carrying.attributes.items():
        for one in several:
            root = _root(one)
            if root in modules or root in names:
                reads.append((attribute, one))
    escaping = {name for name, node in reads if not carrying.is_kept_inside(node)}
    return Elsewhere(frozenset((*names.values(), *(n for n, _ in reads))), frozenset(escaping))


def _imported(tree: Tree) -> tuple[dict[str, str], set[str], bool]:
    """The names that a file imports with their own, its modules, and whether by `*`."""
    aliases = [alias for node in tree.of(ast.ImportFrom) for alias in node.names]
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in tree.of(ast.Import)
        for alias in node.names
    }
    names = {alias.asname or alias.name: alias.name for alias in aliases}
    return names, modules, "*" in names


def _root(node: ast.Attribute) -> str:
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return getattr(inner, "id", "")


def _may_be_module(value: Value) -> bool:
    """Whether a name may be, or lead to, one of the project's modules or functions."""
    if isinstance(value, ClassInfo):
        return value.is_module or not value.bases
    return not isinstance(value, (Api, Foreign, Plain, Tensor))


def is_registered(info: ClassInfo) -> bool:
    """Whether a class of the project above a class hears of each that derives from it."""
    waiting, seen = list(info.bases), set[int]()
    while waiting:
        base = waiting.pop()
        if isinstance(base, ClassInfo) and id(base) not in seen:
            seen.add(id(base))
            if "__init_subclass__" in base.methods:
                return True
            waiting += base.bases
    return False


def with_importers(found: set[Path], imports: Mapping[Path, list[Path]]) -> set[Path]:
    """Files, those that import them, and those that import these."""
    while new := {p for p, of in imports.items() if p not in found and not found.isdisjoint(of)}:
        found = found | new
    return found


def with_importers_and_imports(
    leaving: set[Path], files: Iterable[Path], imports: Mapping[Path, list[Path]]
) -> set[Path]:
    """Files that set modes, those that import them, and all that these import."""
    found = leaving | {path for path in files if not leaving.isdisjoint(imports.get(path, ()))}
    waiting = list(found)
    for path in waiting:
        new = set(imports.get(path, ())) - found
        found |= new
        waiting += new
    return found

"""The module with the runtime functions that a port uses: their sources, and what they need."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from isograd import runtime
from isograd.convert.tree import read_tree

RUNTIME = Path(runtime.__file__).parent
_PACKAGE = "isograd.runtime"
#: Further files of what ports may need.
_OWN = {
    name: Path(__file__).with_name(f"{name}.py")
    for name in ("unconverted", "helpers", "slices", "trees")
}
_NOQA = re.compile(r"(\s*)# (?:noqa|type:|isort)[^\n#]*(#?)")
_HEAD = '''"""What PyTorch has and MindSpore lacks, composed of MindSpore's operators: {names}.

Written by isograd for this port, with what it uses and nothing else; it needs mindspore and numpy
alone.  Names, arguments, defaults and dtypes are torch's.
"""

from __future__ import annotations
'''

#: A definition by its module and its name.
Key = tuple[str, str]


@dataclass
class _Unit:
    """A top-level definition: its lines with the comments above it, and the names that it reads."""

    module: str
    names: tuple[str, ...]
    position: int
    node: ast.stmt
    text: str
    #: The line of the file with which the text begins.
    first_line: int
    is_resolved: bool = False
    reads: list[tuple[int, int, Key]] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    builtins: list[tuple[int, int, str]] = field(default_factory=list)


@dataclass
class _Module:
    """A file of compositions: what its names mean."""

    name: str
    defined: dict[str, _Unit] = field(default_factory=dict)
    #: Names that are bound by imports of other compositions: a definition, or a whole module.
    borrowed: dict[str, Key] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


class Library:
    """All runtime functions; a file is read when something asks for what it defines.

    changed: texts that are read in place of files.
    """

    def __init__(self, folder: Path = RUNTIME, changed: Mapping[str, str] | None = None) -> None:
        self._changed = changed or {}
        self._paths = {path.stem: path for path in sorted(folder.glob("*.py"))}
        self._paths.update(_OWN)
        self._modules: dict[str, _Module] = {}

    def _module(self, name: str) -> _Module | None:
        if name not in self._modules and name in self._paths:
            text = self._changed.get(name) or self._paths[name].read_text(encoding="utf-8")
            self._modules[name] = _read(name, text, set(self._paths))
        return self._modules.get(name)

    def _find(self, key: Key) -> _Unit | None:
        module = self._module(key[0])
        return None if module is None else module.defined.get(key[1])

    def _unit(self, key: Key) -> _Unit:
        """A definition with what it reads; raises KeyError where there is none."""
        unit = self._find(key)
        if unit is None:
            raise KeyError(key[1])
        if not unit.is_resolved:
            self._resolve(unit, self._modules[unit.module])
        return unit

    def module_of(self, names: Iterable[str]) -> str:
        """The text of a module that defines these names and what they need.

        Raises KeyError for a name that no runtime function has.
        """
        wanted = sorted(set(names))
        roots = {name: self._public(name) for name in wanted}
        units = self._closure(roots.values())
        renamed = _renames(units, roots)
        ordered = self._ordered(units)
        imports: set[str] = set()
        for unit in ordered:
            imports |= unit.imports
        taken = set(renamed.values())
        if any(name in taken for unit in ordered for _, _, name in unit.builtins):
            imports.add("import builtins")
        parts = [_written(unit, renamed, taken) for unit in ordered]
        shown = ", ".join(wanted)
        head = _wrapped(_HEAD.format(names=shown))
        lines = "\n".join(_sorted_imports(imports))
        return f"{head}\n{lines}\n\n\n" + "\n\n\n".join(parts) + "\n"

    def needed(self, names: Iterable[str]) -> dict[Key, ast.stmt]:
        """The definitions of these names and of what they need."""
        units = self._closure(map(self._public, names))
        return {(unit.module, name): unit.node for unit in units for name in unit.names}

    def text_of(self, name: str) -> str:
        """The definition of a name that needs nothing else of the runtime."""
        unit = self._unit(self._public(name))
        return "\n".join(_NOQA.sub(_without_noqa, line) for line in unit.text.split("\n"))

    def first_sentence(self, name: str) -> str:
        """What a runtime function does; empty where its definition has no docstring."""
        node = self._unit(self._public(name)).node
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return ""
        text = ast.get_docstring(node) or ""
        return " ".join(text.split("\n\n")[0].split()).rstrip(".")

    def returned(self, name: str) -> str:
        """The class that a function says to return."""
        node = self._unit(self._public(name)).node
        assert isinstance(node, ast.FunctionDef)
        assert node.returns is not None
        return ast.unparse(node.returns)

    def parameters(self, name: str, but: frozenset[str]) -> tuple[frozenset[str], int]:
        """The names of a function's parameters but these, and how many it takes by place."""
        node = self._unit(self._public(name)).node
        assert isinstance(node, ast.FunctionDef)
        given = node.args
        names = [part.arg for part in (*given.posonlyargs, *given.args)]
        most = next((place for place, name in enumerate(names) if name in but), len(names))
        return frozenset((*names, *(part.arg for part in given.kwonlyargs))) - but, most

    def without_none(self, name: str) -> dict[str, int]:
        """The parameters of a runtime function that take no None, with their places."""
        node = self._unit(self._public(name)).node
        assert isinstance(node, ast.FunctionDef)
        given = [*node.args.posonlyargs, *node.args.args]
        return {
            part.arg: place
            for place, part in enumerate(given)
            if part.annotation is not None and "None" not in ast.unparse(part.annotation)
        }

    def members(self, name: str) -> frozenset[str]:
        """The methods and properties that a class of runtime functions has of its own."""
        node = self._unit(self._public(name)).node
        assert isinstance(node, ast.ClassDef)
        return frozenset(part.name for part in node.body if isinstance(part, ast.FunctionDef))

    def _public(self, name: str) -> Key:
        found = [(stem, name) for stem in _OWN if self._find((stem, name)) is not None]
        if found:
            return found[0]
        return runtime.homes()[name], name

    def _followed(self, key: Key) -> Key:
        seen = set()
        while self._find(key) is None and key not in seen:
            seen.add(key)
            module = self._module(key[0])
            if module is None or key[1] not in module.borrowed:
                raise KeyError(key[1])
            key = module.borrowed[key[1]]
        return key

    def _resolve(self, unit: _Unit, module: _Module) -> None:
        unit.is_resolved = True
        tree = read_tree(ast.Module([unit.node], []), {ast.Name, ast.Attribute})
        for node in tree.of(ast.Name):
            if not tree.binds(node.id, node):
                self._resolve_name(node, unit, module)
        for member in tree.of(ast.Attribute):
            if isinstance(member.value, ast.Name):
                other = module.modules.get(member.value.id)
                if other is not None:
                    start, end = _span(unit, member)
                    unit.reads.append((start, end, self._followed((other, member.attr))))

    def _resolve_name(self, node: ast.Name, unit: _Unit, module: _Module) -> None:
        name = node.id
        if name in module.modules:
            return
        if name in module.defined:
            unit.reads.append((*_span(unit, node), (module.name, name)))
        elif name in module.borrowed:
            unit.reads.append((*_span(unit, node), self._followed(module.borrowed[name])))
        elif name in module.outside:
            unit.imports.add(module.outside[name])
        elif hasattr(builtins, name) and isinstance(node.ctx, ast.Load):
            unit.builtins.append((*_span(unit, node), name))

    def _closure(self, roots: Iterable[Key]) -> list[_Unit]:
        waiting = list(roots)
        seen: dict[int, _Unit] = {}
        while waiting:
            unit = self._unit(waiting.pop())
            if id(unit) not in seen:
                seen[id(unit)] = unit
                waiting += [key for _, _, key in unit.reads]
        return list(seen.values())

    def _ordered(self, units: list[_Unit]) -> list[_Unit]:
        """Each after what it reads, else by module and place.

        Where two read each other, one that Python reads at once (a base class) is before the other.
        """
        ordered: list[_Unit] = []
        is_done: dict[int, bool] = {}

        def visit(unit: _Unit, in_turn: bool = False) -> None:
            if id(unit) in is_done:
                return
            is_done[id(unit)] = False
            for key in sorted({key for _, _, key in unit.reads}):
                visit(self._unit(key))
            needed = [self._unit(key) for key in _read_at_once(unit)]
            if not in_turn and not all(is_done.get(id(o)) or o is unit for o in needed):
                del is_done[id(unit)]
                return
            is_done[id(unit)] = True
            ordered.append(unit)

        for unit in sorted(units, key=lambda unit: (unit.module, unit.position)):
            visit(unit, in_turn=True)
        return ordered


def _read_at_once(unit: _Unit) -> set[Key]:
    """What a definition reads outside the bodies of functions."""
    functions = (n for n in ast.walk(unit.node) if isinstance(n, ast.FunctionDef))
    bodies = [_span(unit, part) for function in functions for part in function.body]
    return {
        key
        for start, _, key in unit.reads
        if not any(first <= start < last for first, last in bodies)
    }


@lru_cache(maxsize=1)
def library() -> Library:
    """The runtime functions that ship with isograd."""
    return Library()


def _read(stem: str, text: str, stems: set[str]) -> _Module:
    module = _Module(stem)
    lines = text.split("\n")
    for position, node in enumerate(ast.parse(text).body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _import(node, module, stems)
            continue
        names = _defined(node)
        if names:
            assert node.end_lineno is not None
            first = min(
                [node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))]
            )
            while first > 1 and lines[first - 2].startswith("#:"):
                first -= 1
            body = "\n".join(lines[first - 1 : node.end_lineno])
            unit = _Unit(stem, names, position, node, body, first)
            module.defined.update(dict.fromkeys(names, unit))
    return module


def _import(node: ast.Import | ast.ImportFrom, module: _Module, stems: set[str]) -> None:
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
        home = (node.module or "")[len(_PACKAGE) :].lstrip(".")
        for alias in node.names:
            name = alias.asname or alias.name
            if not home and alias.name in stems:
                module.modules[name] = alias.name
            else:
                module.borrowed[name] = (home, alias.name)
        return
    for alias in node.names:
        renamed = f" as {alias.asname}" if alias.asname else ""
        name = alias.asname or alias.name.partition(".")[0]
        if isinstance(node, ast.Import):
            module.outside[name] = f"import {alias.name}{renamed}"
        elif node.module != "__future__":
            module.outside[name] = f"from {node.module} import {alias.name}{renamed}"


def _defined(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign):
        targets = [node.target]
    names = (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))
    return tuple(name for name in names if name != "__all__")


def _span(unit: _Unit, node: ast.expr | ast.stmt) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = unit.text.split("\n")
    above, last_above = node.lineno - unit.first_line, node.end_lineno - unit.first_line
    before = sum(len(line) + 1 for line in lines[:above])
    start = len(lines[above].encode()[: node.col_offset].decode())
    last = sum(len(line) + 1 for line in lines[:last_above])
    end = len(lines[last_above].encode()[: node.end_col_offset].decode())
    return before + start, last + end


def _renames(units: list[_Unit], roots: dict[str, Key]) -> dict[Key, str]:
    """The names of all definitions; where two modules share one, the other's module is added."""
    names: dict[Key, str] = {key: name for name, key in roots.items()}
    taken = set(names.values())
    for unit in sorted(units, key=lambda unit: (unit.module, unit.position)):
        for name in unit.names:
            key = (unit.module, name)
            if key in names:
                continue
            chosen = name
            while chosen in taken:
                chosen = f"_{unit.module.lstrip('_')}_{chosen.lstrip('_')}"
            names[key] = chosen
            taken.add(chosen)
    return names


def _written(unit: _Unit, names: dict[Key, str], taken: set[str]) -> str:
    """A definition with the names of the module that it goes to."""
    text = unit.text
    edits = [(start, end, names[key]) for start, end, key in unit.reads]
    edits += [
        (start, end, f"builtins.{name}") for start, end, name in unit.builtins if name in taken
    ]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    if isinstance(unit.node, (ast.FunctionDef, ast.ClassDef)):
        new = names[(unit.module, unit.names[0])]
        if new != unit.names[0]:
            word = "class" if isinstance(unit.node, ast.ClassDef) else "def"
            text = re.sub(rf"^{word} {unit.names[0]}\b", f"{word} {new}", text, flags=re.MULTILINE)
    return "\n".join(_NOQA.sub(_without_noqa, line) for line in text.split("\n"))


def _without_noqa(found: re.Match[str]) -> str:
    """Nothing, or the space before a comment that goes on."""
    return found[1] + found[2] if found[2] else ""


def _sorted_imports(imports: set[str]) -> list[str]:
    """One line for each module, the standard library first."""
    plain = sorted(text for text in imports if text.startswith("import "))
    several: dict[str, list[str]] = {}
    for text in imports:
        if text.startswith("from "):
            home, _, name = text[5:].partition(" import ")
            several.setdefault(home, []).append(name)
    lines = plain + [f"from {home} import {', '.join(sorted(several[home]))}" for home in several]

    def rank(line: str) -> tuple[bool, bool, str]:
        home = line.split()[1].partition(".")[0]
        return home in ("mindspore", "numpy"), line.startswith("from"), line

    lines.sort(key=rank)
    first = [line for line in lines if not rank(line)[0]]
    second = [line for line in lines if rank(line)[0]]
    return [*first, *([""] if first and second else []), *second]


def _wrapped(head: str) -> str:
    """The docstring's first paragraph in lines of at most a hundred letters."""
    first, _, rest = head.partition("\n")
    if len(first) <= 100:
        return head
    words, lines = first.split(" "), [""]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > 100:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines) + "\n" + rest

"""A public function that takes or returns arrays says their shapes, their dtypes, what it raises.

A docstring has one entry per array, ``name: shape, dtype, meaning``; arrays of one kind share one
(``first, second: one shape, float64``).  The returned array has its shape and dtype in an entry
``returns:`` or in the sentences outside of the other entries.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "isograd"
#: What ports carry documents itself by the torch function whose name it has.
LEFT_OUT = ("runtime",)
#: "(rows, 3)", "of any shape", "0-d", "scalar"
SHAPE = re.compile(r"\([\w*+.… -]+,[^()]*\)|\bshapes?\b|\b[0-9]-d\b|\bscalars?\b", re.IGNORECASE)
DTYPE = re.compile(r"\b(dtypes?|b?float\d*|u?int\d*|integers?|complex\d*|bool|booleans?)\b")
_NAMES = r"\*{0,2}\w+(?:, \*{0,2}\w+)*"
ENTRY = re.compile(rf"^({_NAMES}): (.*(?:\n(?!{_NAMES}: |\s*$).*)*)", re.MULTILINE)
#: numpy's array, and the tensor with the dtype that it had in its framework.
ARRAYS = frozenset({"NDArray", "ndarray", "TensorValue"})


Trees = dict[Path, ast.Module]


@dataclass(frozen=True)
class Function:
    """A public function or a public method of a public class, with its class and its file."""

    path: Path
    node: ast.FunctionDef
    owner: ast.ClassDef | None


@dataclass(frozen=True)
class Classes:
    """The classes of the sources by their names, and those of them that are protocols."""

    named: dict[str, ast.ClassDef]
    protocols: list[ast.ClassDef]


def parsed() -> Trees:
    """The sources; read by the test, since each process of tests imports this file."""
    return {
        path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in LEFT_OUT
    }


def names_in(annotation: ast.AST | None) -> set[str]:
    """The names in a type; a Callable takes arrays itself, so its types do not count."""
    if annotation is None:
        return set()
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return set(re.findall(r"\w+", annotation.value))
    own = {getattr(annotation, "id", ""), getattr(annotation, "attr", "")}
    if isinstance(annotation, ast.Subscript) and "Callable" in names_in(annotation.value):
        return set()
    return own.union(*(names_in(child) for child in ast.iter_child_nodes(annotation)))


def aliases(tree: ast.Module, known: frozenset[str]) -> set[str]:
    """The names that a module gives to types of arrays: ``Floats = NDArray[np.float64]``."""
    found: set[str] = set()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        named = isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper()
        if named and isinstance(value, (ast.Subscript, ast.BinOp, ast.Constant)):
            found |= {target.id} if names_in(value) & (known | found) else set()
    return found


def top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module, also those below ``if TYPE_CHECKING:``."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def arrays_of(trees: Trees) -> dict[Path, frozenset[str]]:
    """Per file: the names that mean arrays in it, its own aliases and those that it imports."""
    own = {path: aliases(tree, ARRAYS) for path, tree in trees.items()}
    modules = {f"isograd.{'.'.join(path.with_suffix('').parts)}": path for path in trees}
    result = {}
    for path, tree in trees.items():
        imported = {
            alias.asname or alias.name
            for node in top_level(tree)
            if isinstance(node, ast.ImportFrom) and node.module in modules
            for alias in node.names
            if alias.name in own[modules[node.module]]
        }
        known = ARRAYS | imported
        result[path] = known | aliases(tree, known)
    return result


def public_functions(trees: Trees) -> Iterator[Function]:
    """Every one of the sources, without the tests of the conformance classes."""
    for path, tree in trees.items():
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        owners = [None, *(one for one in classes if not one.name.startswith("_"))]
        for owner in owners:
            for node in (owner or tree).body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith(("_", "test_")):
                    yield Function(path, node, owner)


def classes_of(trees: Trees) -> Classes:
    """Every class of the sources."""
    named = {
        node.name: node
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    protocols = [
        node for node in named.values() if any("Protocol" in names_in(b) for b in node.bases)
    ]
    return Classes(named, protocols)


def names_of_arguments(node: ast.FunctionDef) -> set[str]:
    return {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}


def documentation(function: Function, classes: Classes) -> str:
    """A method's docstring, with those of the methods of bases and protocols that it implements."""
    texts = [ast.get_docstring(function.node) or ""]
    if function.owner is not None:
        named = classes.named
        bases = set().union(*(names_in(base) for base in function.owner.bases)) & set(named)
        for owner in [*(named[name] for name in sorted(bases)), *classes.protocols]:
            texts += [
                ast.get_docstring(node) or ""
                for node in owner.body
                if isinstance(node, ast.FunctionDef)
                and node.name == function.node.name
                and names_of_arguments(node) <= names_of_arguments(function.node)
            ]
    return "\n\n".join(dict.fromkeys(texts))


def has_shape_and_dtype(text: str) -> bool:
    return SHAPE.search(text) is not None and DTYPE.search(text) is not None


def missing(function: Function, arrays: frozenset[str], classes: Classes) -> list[str] | None:
    """What a docstring leaves out; None where the function has no array."""
    node = function.node
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    every += [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
    taken = [one.arg for one in every if names_in(one.annotation) & arrays]
    returned = bool(names_in(node.returns) & arrays)
    if not taken and not returned:
        return None
    text = documentation(function, classes)
    entries = {
        name.strip("* "): entry for names, entry in ENTRY.findall(text) for name in names.split(",")
    }
    left = [name for name in taken if not has_shape_and_dtype(entries.get(name, ""))]
    if returned and not has_shape_and_dtype(entries.get("returns", ENTRY.sub("", text))):
        left.append("returns")
    raised = any(isinstance(one, ast.Raise) and one.exc for one in ast.walk(node))
    return [*left, "raises"] if raised and "aise" not in text else left


def test_functions_of_arrays_document_shapes_dtypes_and_errors() -> None:
    trees = parsed()
    arrays, classes = arrays_of(trees), classes_of(trees)
    gaps = {
        f"{one.path}:{one.node.lineno} {one.node.name}": left
        for one in public_functions(trees)
        if (left := missing(one, arrays[one.path], classes)) is not None
    }
    silent = {place: left for place, left in gaps.items() if left}
    assert len(gaps) > 300
    assert len(silent) <= len(gaps) / 10, silent

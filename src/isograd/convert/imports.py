"""Import statements: torch's go away, MindSpore's stand in the place of the first of them."""

from __future__ import annotations

import ast
import re

from isograd.convert.file import FileEdit
from isograd.convert.generated import library
from isograd.convert.kept_names import asks_itself, kept_names
from isograd.convert.names import is_torch
from isograd.convert.numpy_numbers import meeting_numpy
from isograd.convert.text import Text, narrow
from isograd.convert.tree import imported_from
from isograd.scan.imports import absolute_name

_NO_LIBRARY = "{0} needs torch, and has no counterpart that a port could import"
_ADVICE = "Port what is used of it, or replace it; until then using it raises an error."
Import = ast.Import | ast.ImportFrom
_BACKWARD = frozenset(("backward", "backward_of_all", "gradients"))
#: What asks for gradients where no optimizer may be there yet.
_BEFORE_TRAINING = frozenset(("gradients", "leaf", "tensor_requires_grad_"))


def write_imports(file: FileEdit, package: str, *, is_asked: bool = False) -> None:
    """Leave out what imports torch, and add what the new code needs.

    is_asked: whether something asks the file's module for names by a text.
    """
    third = {(id(node), id(alias)): (name, full) for node, alias, name, full in file.imported.third}
    is_asked = is_asked or asks_itself(file.tree)
    removed: list[Import] = []
    names: list[str] = []
    for node in file.tree.of(ast.Import, ast.ImportFrom):
        gone = [alias for alias in node.names if _is_torch(node, alias, file, package)]
        foreign = [alias for alias in node.names if (id(node), id(alias)) in third]
        if not gone and not foreign:
            continue
        if file.is_guarded(node) and (foreign or _is_unknown(node, gone, file)):
            name = _module_name(node, package)
            file.replace(node, f'raise ImportError("{name} needs torch")')
            removed.append(node)
            continue
        lines = [_placeholder(file, node, *third[(id(node), id(alias))]) for alias in foreign]
        lines = [line for line in lines if line]
        if is_asked and isinstance(node, ast.ImportFrom):
            names += kept_names(file, node, gone)
        kept = [alias for alias in node.names if alias not in gone and alias not in foreign]
        _rewrite(file, node, kept, lines)
        removed.append(node)
    made = _factories(file)
    file.spelling.settle("\n".join((file.text.result(), *made, *names)))
    settings = [_recording(file), meeting_numpy(file), _copying(file)]
    at = _add(file, removed)
    _add_settings(file, [statement for statement in settings if statement], at)
    between = file.text.newline * 2
    _add_settings(file, [f"{between}{text}" for text in made], at)
    _add_settings(file, names, at)


def _is_torch(node: Import, alias: ast.alias, file: FileEdit, package: str) -> bool:
    if isinstance(node, ast.Import):
        return is_torch(alias.name) and alias.name.partition(".")[0] not in file.own_roots
    base = absolute_name(package, node)
    if base is None:
        return False
    if not node.level and base.partition(".")[0] not in file.own_roots:
        return is_torch(base)
    return alias.name != "*" and id(alias) in file.imported.borrowed


def _module_name(node: Import, package: str) -> str:
    if isinstance(node, ast.Import):
        return node.names[0].name
    return absolute_name(package, node) or ""


def _is_unknown(node: Import, gone: list[ast.alias], file: FileEdit) -> bool:
    """Whether something that is imported has no counterpart."""
    for alias in gone:
        if isinstance(node, ast.Import):
            if alias.name in ("torch",):
                continue
            api = file.names.canonical(alias.name)
            if file.names.kind(api) != "m" or ".cuda" in api or "._" in api:
                return True
            continue
        api = file.names.canonical(f"{node.module}.{alias.name}")
        if file.names.kind(api) == "m" or file.stands_for(api):
            continue
        return True
    return False


def _placeholder(file: FileEdit, node: Import, name: str, full: str) -> str:
    """What replaces something of a library that needs torch; nothing for all of its names."""
    file.finding(node, "third-party", _NO_LIBRARY.format(full), _ADVICE, api=full)
    if name == "*":
        return ""
    return f"{name} = {file.unconverted(full)}"


def _rewrite(file: FileEdit, node: Import, kept: list[ast.alias], lines: list[str]) -> None:
    """The statement with what is left of it, or nothing."""
    text = file.text
    start, end = text.span(node)
    if kept:
        names = ", ".join(
            alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in kept
        )
        if isinstance(node, ast.Import):
            lines = [f"import {names}", *lines]
        else:
            head = re.match(r"from\s+\S+\s+import\s*", text.original[start:end])
            assert head is not None
            first = f"{head.group().rstrip()} {names}"
            column = start - text.line_start(node.lineno)
            if column + len(first) > 100:
                inner = "".join(
                    f"{' ' * (column + 4)}{part.strip()},{text.newline}"
                    for part in names.split(", ")
                )
                first = f"{head.group().rstrip()} ({text.newline}{inner}{' ' * column})"
            lines = [first, *lines]
    for comment in file.comments_between(start, end):
        file.keep_comment(node, comment)
    if lines:
        indent = " " * (start - text.line_start(node.lineno))
        if text.original[text.line_start(node.lineno) : start].strip():
            text.replace(start, end, "; ".join(lines))
        else:
            text.replace(start, end, f"{text.newline}{indent}".join(lines))
        return
    file.leave_out(node)


def _add(file: FileEdit, removed: list[Import]) -> int:
    """The new imports, where the first import of torch's stood at the file's top level; where."""
    statements = file.spelling.imports()
    if not statements:
        return 0
    text = file.text
    lines = "".join(f"{statement}{text.newline}" for statement in statements)
    body = file.tree.module.body
    head = _head(body)
    first: ast.stmt | None = body[0] if body else None
    # What follows an import in `if` or `try` may read what it imports.
    around = min((_top_of(node, file) for node in removed), key=_line, default=None)
    if around is not None and around in head:
        if isinstance(around, (ast.Import, ast.ImportFrom)):
            return _put(text, text.line_start(around.lineno), lines)
        head = head[: head.index(around)]
        first = around
    if head:
        last = head[-1]
        assert last.end_lineno is not None
        at = text.line_start(last.end_lineno + 1)
        if at == len(text.original) and not text.original.endswith(("\n", "\r")):
            lines = text.newline + lines
        return _put(text, at, lines)
    if first is None:
        return _put(text, 0, lines)
    decorators = getattr(first, "decorator_list", [])
    line = min(part.lineno for part in (first, *decorators))
    return _put(text, text.line_start(line), lines)


def _put(text: Text, at: int, lines: str) -> int:
    text.insert(at, lines)
    return at


def _top_of(node: ast.stmt, file: FileEdit) -> ast.stmt:
    """The statement of the module in which a statement stands."""
    *_, top, _ = (node, *file.tree.above(node))
    assert isinstance(top, ast.stmt)
    return top


def _line(statement: ast.stmt) -> int:
    return statement.lineno


def _factories(file: FileEdit) -> list[str]:
    """The functions that make MindSpore's layers by torch's arguments, as this file writes them."""
    texts = []
    for name, chosen in file.factories.items():
        text = library().text_of(name).replace(f"def {name}(", f"def {chosen}(", 1)
        if name in file.factory_classes:
            text += _class_of_factory(name, chosen, file)
        lines = narrow(file.spelled(text)).split("\n")
        texts.append(file.text.newline.join(lines))
    return texts


def _class_of_factory(name: str, function: str, file: FileEdit) -> str:
    """A class that makes MindSpore's layer, for code that asks whether it is given a class."""
    own, written = file.factory_classes[name]
    native = library().returned(name)
    text = f"\n\n\nclass {written}({native}):\n"
    text += f'    """A class of this name, by torch\'s arguments: its layers are {native}."""\n\n'
    if file.settings.layers.asks_for_instances:
        text += f"    _makes = {native}  # by which the port asks for instances of the class\n\n"
    if file.settings.layers.asks_for_arguments:
        text += f"    __wrapped__ = staticmethod({function})  # whose arguments inspect shows\n\n"
    text += "    def __new__(cls, *args: object, **kwargs: object) -> nn.Cell:\n"
    text += f"        return {function}(*args, **kwargs)"
    return text if own == written else f'{text}\n\n{written}.__name__ = "{own}"'


def _recording(file: FileEdit) -> str:
    """What makes a file record gradients, where no optimizer does it; empty: nothing has to."""
    used = file.spelling.used
    is_by_optimizer = "optim" in file.text.original and not used & _BEFORE_TRAINING
    is_by_optimizer = is_by_optimizer and not _runs(file.tree.module)
    if not _BACKWARD & used or (is_by_optimizer and not _calls_before_optimizers(file)):
        return ""
    return f"{file.name('composites.record_gradients')}()"


def _copying(file: FileEdit) -> str:
    """The statement by which deep copies get memory of their own; empty where none is made."""
    modules = imported_from(file.tree, ("copy",))
    by_module = any(
        part.attr == "deepcopy" and getattr(part.value, "id", "") in modules
        for part in file.tree.of(ast.Attribute)
    )
    by_name = any(
        node.module == "copy" and any(part.name == "deepcopy" for part in node.names)
        for node in file.tree.of(ast.ImportFrom)
    )
    return f"{file.name('composites.copies_own_their_memory')}()" if by_module or by_name else ""


def _runs(module: ast.Module) -> bool:
    """Whether a file is a script, which may ask for gradients before it makes an optimizer."""
    doing = (ast.For, ast.While, ast.With, ast.If)
    return any(
        isinstance(node, doing) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in module.body
    )


def _calls_before_optimizers(file: FileEdit) -> bool:
    """Whether a function calls what it made, a network or a loss, before it makes an optimizer."""
    calls = file.tree.of(ast.Call)
    made = [node for node in calls if file.api_of_call(node).startswith("torch.optim.")]
    for optimizer in made:
        function = file.tree.function(optimizer)
        for node in calls:
            if node.lineno >= optimizer.lineno or not isinstance(node.func, ast.Name):
                continue
            is_inside = function is not None and file.tree.function(node) is function
            if is_inside and file.tree.is_own(node.func.id, node):
                return True
    return False


def _add_settings(file: FileEdit, statements: list[str], at: int) -> None:
    """Statements behind the imports at the top, or behind the new ones where there is no top."""
    head = _head(file.tree.module.body)
    if not statements:
        return
    if head:
        last = head[-1]
        assert last.end_lineno is not None
        at = file.text.line_start(last.end_lineno + 1)
    line = file.text.newline
    file.text.insert(at, line + "".join(f"{statement}{line}" for statement in statements))


def _head(body: list[ast.stmt]) -> list[ast.stmt]:
    """The docstring and the imports at the top, with what stands between them."""
    last = 0
    for position, statement in enumerate(body):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or (is_text and position == 0):
            last = position + 1
        elif not isinstance(statement, (ast.If, ast.Try, ast.Assign)):
            break
    return body[:last]

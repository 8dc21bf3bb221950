"""Names of torch that are not called: dtypes, bases, annotations, classes passed around."""

from __future__ import annotations

import ast

from isograd.convert import layout, types_and_settings
from isograd.convert.analysis.kinds import is_kind
from isograd.convert.base_classes import base_class, overrides_train
from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.names_in_strings import Asked, asked_names
from isograd.convert.passes.calls import is_in_mint, missing
from isograd.convert.passes.example import Example
from isograd.convert.passes.order import Stage
from isograd.convert.passes.reach_of_writes import scope_of
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import class_of

_Named = ast.Name | ast.Attribute | ast.alias
_ASKS_CLASS = frozenset(("isinstance", "issubclass"))


class References:
    """`torch.float32`, `class Net(nn.Module)`, `x: torch.Tensor`, `norm_layer=nn.BatchNorm2d`."""

    kinds = (ast.Name, ast.Attribute)
    stage = Stage.GENERAL
    after = ("Members",)
    examples = (
        Example(
            "a base, a type and a dtype",
            """
            class Net(nn.Module):
                dtype = torch.float32


            def f(x: torch.Tensor):
                return x
            """,
        ),
        Example(
            "a class and a function of torch's that are bound in a class",
            """
            class Block(nn.Module):
                norm = nn.LayerNorm
                act = torch.tanh
            """,
        ),
        Example(
            "classes that are only asked for",
            """
            kinds = (nn.Linear, nn.Conv2d)


            def count(net: nn.Module):
                return sum(isinstance(m, kinds) for m in net.modules())
            """,
        ),
    )
    counterexamples = (
        Example(
            "a name of Python's",
            """
            class Plain(dict):
                kind = float


            layer = nn.ReLU()
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the name by what it means."""
        api = file.named.get(node)
        if api is None:
            return False
        assert isinstance(node, (ast.Name, ast.Attribute))
        parent = file.tree.parents.get(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return True
        if not isinstance(node.ctx, ast.Load):
            return _stored(node, api, file)
        if (name := _looked_up(parent, node)) is not None:
            assert isinstance(parent, ast.Call)
            return _write_looked_up(parent, f"{api}.{name}", file)
        if _asked_by_name(parent, node) and _write_names(node, api, parent, file):
            return True
        file.uses += 1
        use = Use(api, node)
        entry = file.entry(api)
        code = _answer(api, file) or _meant(node, api, entry, file)
        if code and _is_generic(parent, node, file):
            assert isinstance(parent, ast.Subscript)
            file.forget(parent)
            layout.write(file, parent, code)
            file.converted += 1
        elif code:
            layout.write(file, node, code)
            file.converted += 1
        else:
            missing(node, use, file, _why_missing(parent, node, api, entry), entry)
        return True


def _looked_up(parent: ast.AST | None, node: ast.expr) -> str | None:
    """The literal name in `getattr(torch, "float16")`."""
    if not isinstance(parent, ast.Call) or len(parent.args) < 2 or parent.args[0] is not node:
        return None
    function, name = parent.func, parent.args[1]
    if not isinstance(function, ast.Name) or function.id != "getattr":
        return None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _write_looked_up(node: ast.Call, api: str, file: FileEdit) -> bool:
    """Write the whole look-up as the name that it finds."""
    file.uses += 1
    file.forget(node)
    entry = file.entry(api)
    grand = file.tree.parents.get(node)
    is_called = isinstance(grand, ast.Call) and grand.func is node
    code = _answer(api, file) or ("" if entry is None else file.value(entry))
    if (
        api in types_and_settings.TYPES
        or (code and not is_called)
        or (entry is not None and entry.value)
    ):
        is_type = api in types_and_settings.TYPES
        text = file.spelled(types_and_settings.TYPES[api]) if is_type else code
        layout.write(file, node, text)
        file.converted += 1
    else:
        reason = f"{api} has no counterpart in MindSpore"
        missing(node, Use(api, node), file, reason, entry)
    return True


def _why_missing(parent: ast.AST | None, node: ast.expr, api: str, entry: Entry | None) -> str:
    if entry is not None and entry.difference:
        return entry.difference
    if _asked_by_name(parent, node):
        return f"{api} is asked for a name, and no text of the project says for which"
    return f"{api} has no counterpart in MindSpore"


def _asked_by_name(parent: ast.AST | None, node: ast.expr) -> bool:
    """Whether `getattr(nn, kind)` or `hasattr(nn, kind)` asks a package for a name it computes."""
    if not isinstance(parent, ast.Call) or len(parent.args) < 2 or parent.args[0] is not node:
        return False
    function = parent.func
    return isinstance(function, ast.Name) and function.id in ("getattr", "hasattr")


def _write_names(
    node: ast.Name | ast.Attribute, api: str, parent: ast.AST | None, file: FileEdit
) -> bool:
    """Write what of a package may be asked for: the names that the project's texts hold."""
    assert isinstance(parent, ast.Call)
    if file.names.kind(api) != "m":
        return False
    asked = _asked(parent.args[1], api, file)
    found: dict[str, str] = {}
    for name in asked.names:
        whole = f"{api}.{name}"
        code = _meant(node, whole, file.entry(whole), file)
        if code:
            found[name] = code
    goes_on = len(parent.args) > 2 or ast.unparse(parent.func) == "hasattr"
    if not found and not (asked.is_whole and not asked.names and goes_on):
        return False
    file.uses += 1
    members = "".join(f", {name}={code}" for name, code in found.items())
    layout.write(file, node, f'{file.name("composites.Names")}("{api}"{members})')
    file.converted += 1
    lacking = [name for name in asked.names if name not in found]
    if lacking or not asked.is_whole:
        _say_asked(node, api, list(found), lacking, file)
    return True


def _asked(text: ast.expr, api: str, file: FileEdit) -> Asked:
    """What of a package a text may name; of a variable, what it is bound to."""
    scope = scope_of(text, file)
    values = [text]
    if isinstance(text, ast.Name) and text.id not in scope.parameters:
        values = scope.values_of(text.id) or values
    members = file.names.members_of(api)
    asked = [asked_names(value, members, file.settings.words) for value in values]
    names = {name for part in asked for name in part.names}
    return Asked(tuple(sorted(names)), all(part.is_whole for part in asked))


def _say_asked(
    node: ast.expr, api: str, found: list[str], lacking: list[str], file: FileEdit
) -> None:
    message = f"{api} is asked for a name; the port finds what the project's texts name: "
    message += ", ".join(found)
    if lacking:
        message += f"; without a counterpart: {', '.join(lacking)}"
    advice = "Add what else may be asked for; anything else raises AttributeError."
    file.finding(node, "looked-up", message, advice, level=Level.LOOK, api=api)


def _is_generic(parent: ast.AST | None, node: ast.expr, file: FileEdit) -> bool:
    """Whether a type has arguments, `Dataset[int]`, which MindSpore's types do not take."""
    if not isinstance(parent, ast.Subscript) or parent.value is not node:
        return False
    return _is_base(parent, file) or _is_annotation(parent, file)


def _stored(node: ast.Name | ast.Attribute, api: str, file: FileEdit) -> bool:
    """A name that an import bound is bound again: the new value is what counts."""
    if isinstance(node, ast.Attribute):
        file.finding(
            node,
            "not-converted",
            f"{api} is set, and MindSpore has no such setting",
            "Leave the statement out if nothing of the port reads it.",
            api=api,
        )
        # A call is no target: what is set is an attribute of it.
        file.forget(node.value)
        file.replace(node.value, file.unconverted(api.rpartition(".")[0], node))
    return True


def _answer(api: str, file: FileEdit) -> str:
    """A function that means a question about torch's compilers; empty for anything else."""
    return (
        file.name(types_and_settings.NEVER)
        if types_and_settings.ANSWERS.get(api) == "False"
        else ""
    )


def _meant(node: ast.Name | ast.Attribute, api: str, entry: Entry | None, file: FileEdit) -> str:
    """MindSpore's name, by where the name stands; empty where there is none.

    A layer with a `train` of its own has beside it what calls that.
    """
    found = _named(node, api, entry, file)
    owner = file.tree.parents.get(node)
    if found and api != "torch.nn.Module" and isinstance(owner, ast.ClassDef):
        info = file.class_info(owner) if node in owner.bases else None
        if info is not None and info.is_module and overrides_train(info, file):
            mode = file.name("composites.ModeCell")
            file.text.insert(file.text.span(node)[0], f"{mode}, ")
    return found


def value_of_name(node: ast.alias, api: str, file: FileEdit) -> str:
    """What a name that an import binds means as a value; empty where it has no counterpart."""
    return _named(node, api, file.entry(api), file)


def _named(node: _Named | ast.Attribute, api: str, entry: Entry | None, file: FileEdit) -> str:
    is_base = not isinstance(node, ast.alias) and _is_base(node, file)
    if is_base and (base := base_class(node, api, entry, file)):
        return base
    if api in types_and_settings.HELPERS:
        return file.spelled(types_and_settings.HELPERS[api])
    if api == "torch.Tensor" and _is_called_by_name(node, file):
        return file.name("composites.FloatTensor")
    if api in types_and_settings.TYPES:
        if _is_annotation(node, file) and api in types_and_settings.ANNOTATIONS:
            return file.spelled(types_and_settings.ANNOTATIONS[api])
        return file.spelled(types_and_settings.TYPES[api])
    if _is_annotation(node, file):
        is_in_union = isinstance(file.tree.parents.get(node), ast.BinOp)
        return _annotation(api, entry, is_in_union, file)
    if _is_asked(node, file):
        target = _class_of(entry)
        if target:
            return file.name(target)
    if entry is None:
        return ""
    if file.settings.target == "mint" and is_in_mint(entry):
        text = file.name(entry.mint.removeprefix("mindspore."))
    else:
        text = _passed_around(node, api, entry, file)
    package, _, name = entry.factory.partition(".")
    is_factory = package == "cells" and text.split(".")[-1] in (name, file.factories.get(name))
    is_function = is_factory or file.names.kind(api) == "f"
    return f"staticmethod({text})" if is_function and _is_of_class(node, file) else text


def _is_of_class(node: ast.AST, file: FileEdit) -> bool:
    """Whether a value is bound in a class: a function there would be given the object, too."""
    parent = file.tree.parents[node]
    is_bound = isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is node
    return is_bound and isinstance(file.tree.parents[parent], ast.ClassDef)


def _passed_around(node: _Named, api: str, entry: Entry, file: FileEdit) -> str:
    """What is written for a function or class as a value."""
    parent = file.tree.parents.get(node)
    is_owner = isinstance(parent, ast.Attribute) and parent.value is node  # X.from_pretrained
    if file.names.kind(api) != "M" or _is_base(node, file) or is_owner:
        return file.value(entry)
    if is_kind(node, file.tree):
        return file.name(_class_of(entry))
    return file.layer(entry, is_value=True) or file.value(entry)


def _is_called_by_name(node: ast.AST, file: FileEdit) -> bool:
    """`Tensor = torch.cuda.FloatTensor if cuda else torch.Tensor`, where `Tensor(2, 3)` is made."""
    around: ast.AST = node
    while isinstance(around, (ast.Name, ast.Attribute, ast.IfExp)):
        around = file.tree.parents[around]
    if not isinstance(around, ast.Assign) or not isinstance(around.targets[0], ast.Name):
        return False
    name = around.targets[0].id
    calls = file.tree.of(ast.Call)
    return any(isinstance(part.func, ast.Name) and part.func.id == name for part in calls)


def _class_of(entry: Entry | None) -> str:
    """MindSpore's own class of the same kind, for isinstance and annotations."""
    if entry is None:
        return ""
    if entry.instance or entry.value:
        return class_of(entry)
    if entry.applicability is Applicability.HAND:
        return ""
    if entry.target.startswith("mindspore.nn.") and entry.target.count(".") == 2:
        return entry.target.removeprefix("mindspore.")
    return ""


def _annotation(api: str, entry: Entry | None, is_in_union: bool, file: FileEdit) -> str:
    """What stands in an annotation; a type that MindSpore lacks is named in a text.

    In `A | None` it is `object`: Python has no union of a text.
    """
    if api in types_and_settings.ANNOTATIONS:
        return file.spelled(types_and_settings.ANNOTATIONS[api])
    own = _class_of(entry)
    if own:
        return file.name(own)
    if entry is not None and (code := file.value(entry)):
        return code
    return "object" if is_in_union else f'"{api}"'


def _is_base(node: ast.AST, file: FileEdit) -> bool:
    parent = file.tree.parents.get(node)
    return isinstance(parent, ast.ClassDef) and node in parent.bases


def _is_annotation(node: ast.AST, file: FileEdit) -> bool:
    """Whether a name stands in the annotation of a parameter, a result or a variable."""
    inner = node
    for part in file.tree.above(node):
        if isinstance(part, (ast.arg, ast.AnnAssign)):
            return inner is part.annotation
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return inner is part.returns
        if isinstance(part, (ast.Call, ast.stmt)):
            return False
        inner = part
    return False


def _is_asked(node: ast.AST, file: FileEdit) -> bool:
    """Whether a class is the second argument of isinstance or issubclass."""
    inner = node
    for part in file.tree.above(node):
        if isinstance(part, ast.Call):
            function = part.func
            asks = isinstance(function, ast.Name) and function.id in _ASKS_CLASS
            return asks and len(part.args) == 2 and part.args[1] is inner
        if isinstance(part, ast.Assign) and isinstance(inner, ast.Tuple):
            return _is_only_asked(part, file)
        if not isinstance(part, (ast.Tuple, ast.BinOp)):
            return False
        inner = part
    return False


def _is_only_asked(made: ast.Assign, file: FileEdit) -> bool:
    """`kinds = (nn.Linear,)`, where each `kinds` stands in an `isinstance(m, kinds)`."""
    name = getattr(made.targets[0], "id", "")
    named = [node for node in file.tree.of(ast.Name) if getattr(node, "id", "") == name]
    reads = [node for node in named if isinstance(node.ctx, ast.Load)]
    is_alone = len(made.targets) == 1 and len(named) == len(reads) + 1
    return bool(name) and is_alone and bool(reads) and all(_is_asked(node, file) for node in reads)

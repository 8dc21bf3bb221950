"""Calls of torch's functions, classes and methods, by the knowledge's templates."""

from __future__ import annotations

import ast

from isograd.convert import layout, types_and_settings
from isograd.convert.analysis.absent_weights import is_without_weight
from isograd.convert.analysis.layers import is_path
from isograd.convert.analysis.named_arguments import refused_by_native
from isograd.convert.analysis.parameter_loops import is_over_parameters
from isograd.convert.file import FileEdit
from isograd.convert.generated import library
from isograd.convert.model import Level
from isograd.convert.passes.building import start_training, starts_training
from isograd.convert.passes.chains import is_in_chain
from isograd.convert.passes.device_moves import MOVE, with_its_dtype
from isograd.convert.passes.example import Example
from isograd.convert.passes.inplace import bind
from isograd.convert.passes.layers_in_place import changes_its_input, writes_itself
from isograd.convert.passes.order import Stage
from isograd.convert.passes.several_outs import is_several, write_several
from isograd.convert.tree import is_none
from isograd.convert.use import Use
from isograd.knowledge.entry import Applicability, Entry
from isograd.knowledge.rewrite import (
    WITHOUT_MEANING,
    Call,
    NotRewritten,
    Rewritten,
    parameters_of,
)

#: Functions whose tensor is made for `out=` alone.
_MAKING = frozenset("empty zeros ones tensor empty_like zeros_like ones_like new new_empty".split())
_UNSURE = "what {0} is called on is not known to be a tensor"
_UNSURE_ADVICE = "If it is a tensor, write {0}."
#: Methods that MindSpore's tensors have too, and trainers and engines of their own.
_ALIKE = frozenset(("backward", "type"))
#: Of what a tensor is not yet, and a Parameter is.
_LEARNS = "torch.Tensor.requires_grad_"


class Calls:
    """`torch.f(…)`, `nn.Layer(…)` and `x.method(…)`."""

    kinds = (ast.Call,)
    stage = Stage.GENERAL
    examples = (
        Example(
            "a function, a layer and a method",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return torch.relu(x).permute(1, 0)


            layer = nn.Linear(2, 3)
            """,
        ),
        Example(
            "a layer whose mode is read",
            """
            layer = nn.Linear(2, 2)
            print(layer.training)
            """,
        ),
    )
    counterexamples = (
        Example(
            "a function of Python's",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                return len(x)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the call by its entry; what has none becomes a finding."""
        assert isinstance(node, ast.Call)
        use = file.use(node.func)
        if use is None:
            return False
        if use.api == "torch.Tensor.type" and _type(node, use, file):
            return True
        if use.is_member:
            return _method(node, use, file)
        file.uses += 1
        _function(node, use, file)
        if starts_training(node, file):
            start_training(node, file)
        if file.names.kind(use.api) == "M" and writes_itself(node, file):
            file.replace(node, f"{file.name('composites.in_place')}({file.source(node)})")
        return True


def _function(node: ast.Call, use: Use, file: FileEdit) -> None:
    if use.api in types_and_settings.HELPERS:
        _renamed(node, file.name(types_and_settings.HELPERS[use.api]), file)
        return
    entry = file.entry(use.api)
    if entry is None:
        missing(node.func, use, file, f"{use.api} is not known to isograd")
        return
    if file.settings.target == "mint" and _as_mint(node, entry, file):
        return
    value = file.value(entry) if entry.signature or entry.value else ""
    is_class = file.names.kind(use.api) == "M"
    if value and is_class and file.is_shaped(entry.api):
        _renamed(node, value, file)
        return
    if file.settings.layers.without_weight and is_without_weight(node, entry.api):
        _renamed(node, file.spelled(entry.value), file)
        return
    call = file.call(node)
    out = ""
    if isinstance(call, Call) and "out" in call.keywords:
        keywords = dict(call.keywords)
        out = keywords.pop("out")
        call = Call(call.positional, keywords)
    result = call if isinstance(call, NotRewritten) else file.rewritten(entry, call)
    if is_class and _is_made_by_factory(node, entry, result, file):
        return
    if not isinstance(result, NotRewritten):
        if not _write(node, result, out, file):
            reason = f"out={out} of {use.api} has no counterpart in MindSpore"
            missing(node.func, use, file, reason, entry)
            return
        file.converted += 1
        return
    if not _takes_torchs_arguments(node, entry, is_class):
        value = ""
    if value:
        _renamed(node, value, file)
        return
    missing(node.func, use, file, result.reason, entry)


def _is_made_by_factory(
    node: ast.Call, entry: Entry, result: Rewritten | NotRewritten, file: FileEdit
) -> bool:
    """Write a layer whose arguments fit no template of MindSpore's own by what takes torch's."""
    if isinstance(result, Rewritten) and not result.is_runtime:
        return False
    if not entry.factory.startswith("cells.") or file.is_shaped(entry.api):
        return False
    refused = refused_by_native(entry.api)
    names, most = library().parameters(entry.factory.partition(".")[2], refused)
    given = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    if given - names or (len(node.args) > most and not any(map(_is_starred, node.args))):
        return False
    refuses = library().without_none(entry.factory.partition(".")[2])
    if any(keyword.arg in refuses and is_none(keyword.value) for keyword in node.keywords):
        return False
    if any(is_none(part) for place, part in enumerate(node.args) if place in refuses.values()):
        return False
    _renamed(node, file.layer(entry), file)
    return True


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _write(node: ast.Call, result: Rewritten, out: str, file: FileEdit) -> bool:
    """Write a call, and where its result goes too: `out=y`, or its own input (`inplace=True`)."""
    if out not in ("", "None"):
        target = next(part.value for part in node.keywords if part.arg == "out")
        if is_several(target, node, file):
            write_several(target, node, result.code, file)
            return True
        if isinstance(target, ast.Name) and is_in_chain(node, file):
            layout.write_call(file, node, result.code)  # the chain's end is bound
            return True
        if _is_made_here(target, file):
            layout.write_call(file, node, f"{layout.closed(result.code)}.astype({out}.dtype)")
            return True
        if isinstance(target, ast.Attribute):
            code = result.code
            if not _is_given(target, node):
                code = f"{file.name('composites.sized')}({out}, {code})"
            layout.write_call(file, node, f"{file.name('composites.overwrite')}({out}, {code})")
            return True
        is_bound = bind(target, node, result.code, file)
        _give_size(target, node, result.code, file)
        return is_bound
    is_class = file.names.kind(file.api_of_call(node)) == "M"  # whose first argument is no input
    if "inplace" in result.dropped and node.args and not is_class:
        if changes_its_input(node, file) and bind(node.args[0], node, result.code, file):
            return True
    layout.write_call(file, node, result.code)
    return True


def _give_size(target: ast.expr, node: ast.Call, code: str, file: FileEdit) -> None:
    """Let a tensor that is written into get the result's shape; a new one has it."""
    if _is_given(target, node):
        return
    part = file.tree.statement(node) if file.tree.is_statement(node) else node
    held, written = file.source(target), file.source(part)
    is_written = f"{held}[...] = " in written or "overwrite(" in written
    if is_written and code in written:
        sized = f"{file.name('composites.sized')}({held}, {code})"
        file.replace(part, written.replace(code, sized))


def _is_given(target: ast.expr, node: ast.Call) -> bool:
    """Whether the tensor is what a call computes with, too, so that it has the result's shape."""
    return ast.dump(target) in map(ast.dump, node.args)


def _is_made_here(target: ast.expr, file: FileEdit) -> bool:
    """`out=torch.LongTensor(n)`: nobody else has it, and the result is of its dtype."""
    made = file.api_of_call(target).rpartition(".")[2] if isinstance(target, ast.Call) else ""
    return made in _MAKING or made.endswith("Tensor")


def _takes_torchs_arguments(node: ast.Call, entry: Entry, is_class: bool) -> bool:
    """Whether what replaces torch's function or class takes this call's arguments as they are."""
    names = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    known = {parameter.name for parameter in parameters_of(entry.signature or "()")}
    if names - known - WITHOUT_MEANING - {"dtype"}:
        return False
    if is_class:
        return True
    if entry.applicability is Applicability.HAND:
        return False
    # What makes a tensor takes `requires_grad` and leaves it: a leaf is made around the call.
    is_open = any(keyword.arg in (None, "requires_grad") for keyword in node.keywords)
    is_open = is_open or any(isinstance(part, ast.Starred) for part in node.args)
    return is_open and entry.value.startswith("composites.")


def _renamed(node: ast.Call, value: str, file: FileEdit) -> None:
    """Another name that takes the same arguments."""
    file.replace(node.func, value)
    file.converted += 1


def is_in_mint(entry: Entry) -> bool:
    """Whether mint has what can stand where torch's stands.

    Not so its optimizers: their step takes the gradients, and on a CPU SGD and Adam of MindSpore
    2.10 leave the parameters as they are without a word.
    """
    has_counterpart = entry.mint.startswith("mindspore.mint.")
    return has_counterpart and not entry.mint.startswith("mindspore.mint.optim.")


def _as_mint(node: ast.Call, entry: Entry, file: FileEdit) -> bool:
    """mint's functions take torch's arguments."""
    if not is_in_mint(entry):
        return False
    _renamed(node, file.name(entry.mint.removeprefix("mindspore.")), file)
    if entry.verified is None or not entry.verified.forward:
        file.finding(
            node,
            "mint-unverified",
            f"{entry.mint} was not executed here",
            level=Level.LOOK,
            api=entry.api,
        )
    return True


def missing(
    node: ast.expr, use: Use, file: FileEdit, reason: str, entry: Entry | None = None
) -> None:
    """Leave a name of torch as something that imports, with the reason as a finding."""
    advice = entry.advice if entry is not None else ""
    file.finding(node, "not-converted", reason, advice, api=use.api)
    if file.tree.function(node) is None:
        file.left_at_import.setdefault(file.tree.statement(node), (node, use.api))
    file.replace(node, file.unconverted(use.api, node))


def _method(node: ast.Call, use: Use, file: FileEdit) -> bool:
    assert isinstance(node.func, ast.Attribute)
    if use.api in types_and_settings.LEFT_ALONE:
        return True
    file.uses += 1
    if file.is_ported_module_member(use):
        file.converted += 1
        return True
    entry = file.entry(use.api)
    receiver = file.argument(node.func.value)
    if entry is None:
        if use.is_sure:
            reason = f"{use.api} is not known to isograd"
            file.finding(node.func, "not-converted", reason, api=use.api)
        return True
    call = file.call(node, receiver)
    if use.api == MOVE and isinstance(call, Call):
        call = with_its_dtype(call, node, file)
    result = call if isinstance(call, NotRewritten) else file.rewritten(entry, call)
    if isinstance(result, NotRewritten):
        if use.is_sure and not _as_function(node, receiver, entry, file):
            file.finding(node.func, "not-converted", result.reason, entry.advice, api=use.api)
        return True
    code = result.code
    if "".join(code.split()) == "".join(file.source(node).split()):
        file.converted += 1
        return True
    if not use.is_sure:
        _unsure(node, use, code, file)
        return True
    layout.write_call(file, node, code)
    file.converted += 1
    is_parameter = use.api == _LEARNS and _is_parameter(node.func.value, file)
    if entry.applicability is Applicability.LOOK and entry.difference and not is_parameter:
        file.finding(node.func, "look", entry.difference, level=Level.LOOK, api=use.api)
    return True


def _is_parameter(node: ast.expr, file: FileEdit) -> bool:
    """Whether a tensor is a Parameter as it is: `m.weight`, or p of `for p in m.parameters()`."""
    if isinstance(node, ast.Name):
        loop = file.tree.loop(node)
        if loop is not None and is_over_parameters(loop):
            return True
    return file.is_parameter(node)


def _type(node: ast.Call, use: Use, file: FileEdit) -> bool:
    """`x.type(torch.LongTensor)`, `x.type(kind)` and `x.type()`; a dtype is for the knowledge."""
    named = [part.value for part in node.keywords if part.arg == "dtype"]
    kinds = [*node.args, *named]
    if len(kinds) > 1 or len(named) != len(node.keywords):
        return False
    api = file.named.get(kinds[0], "") if kinds else ""
    dtype = types_and_settings.DTYPES_OF_CLASSES.get(api, "")
    if file.names.kind(api) == "d" or not (use.is_sure or dtype):
        return False
    assert isinstance(node.func, ast.Attribute)
    if dtype:
        code = f"{layout.operand(file, node.func.value)}.astype({file.name(dtype)})"
    else:
        given = "".join(f", {file.argument(part)}" for part in kinds)
        code = f"{file.name('composites.typed')}({file.argument(node.func.value)}{given})"
    layout.write_call(file, node, code)
    file.uses += 1
    file.converted += 1
    return True


def _as_function(node: ast.Call, receiver: str, entry: Entry, file: FileEdit) -> bool:
    """Write `x.clamp(*limits)` as a function that takes torch's arguments, if there is one.

    In torch's order, and by torch's names, they need not be known.
    """
    is_open = any(isinstance(part, ast.Starred) for part in node.args)
    if not is_open and all(keyword.arg is not None for keyword in node.keywords):
        return False
    value = entry.value or _twins_value(entry, file)
    if not value or (node.keywords and not value.startswith("composites.")):
        return False
    given = [receiver, *(file.source(part) for part in (*node.args, *node.keywords))]
    layout.write_call(file, node, f"{file.spelled(value)}({', '.join(given)})")
    file.converted += 1
    return True


def _twins_value(entry: Entry, file: FileEdit) -> str:
    """What replaces the function of a method's name that takes the method's arguments."""
    twin = file.entry(f"torch.{entry.api.rpartition('.')[2]}")
    if twin is None or twin.applicability is Applicability.HAND:
        return ""
    ours = [p.name for p in parameters_of(entry.signature or "()") if p.name != "self"]
    theirs = [p.name for p in parameters_of(twin.signature or "()")][1:]
    return twin.value if ours and ours == theirs[: len(ours)] else ""


def _is_cheap(node: ast.expr) -> bool:
    """`a.b`, and `args[0]` or `batch["x"]` of it, which are the same when they are read again."""
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        node = node.value
    return is_path(node)


def _unsure(node: ast.Call, use: Use, code: str, file: FileEdit) -> None:
    """Ask at run time what is called, where asking twice is harmless; tell it elsewhere."""
    assert isinstance(node.func, ast.Attribute)
    if _is_cheap(node.func.value) and node.func.attr not in _ALIKE:
        code = f"({code})" if isinstance(layout.parsed(code), (ast.IfExp, ast.Lambda)) else code
        receiver, other = file.source(node.func.value), file.source(node)
        is_tensor = f"isinstance({receiver}, {file.name('ms.Tensor')})"
        layout.write(file, node, f"{code} if {is_tensor} else {other}")
        file.converted += 1
        return
    name = use.api.rpartition(".")[2]
    file.finding(
        node.func,
        "receiver-unknown",
        _UNSURE.format(name),
        _UNSURE_ADVICE.format(code),
        level=Level.LOOK,
        api=use.api,
    )

"""The module of a converted graph as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from isograd.convert.graph.classes import ClassCode, Method
from isograd.convert.graph.code import Hole, fill
from isograd.convert.graph.layout import WIDTH, double_quoted, laid_out
from isograd.convert.graph.program import Tensor

#: The name of the module beside it that holds compositions.
COMPOSITIONS = "torch_functions"
_COMPOSITION = re.compile(r"\bcomposites\.(\w+)")

_GROUP = '''
class Group(nn.Cell):
    """Cells and parameters by name, which the cell around them uses."""

    def __init__(self, **members):
        super().__init__()
        for name, member in members.items():
            if isinstance(member, Parameter):
                member.name = name
                self._params[name] = member
            else:
                self.insert_child_to_cell(name, member)
'''
_PARAMETER = '''
def parameter(*shape, dtype=ms.float32, requires_grad=True, name=None):
    """A parameter of zeros, which `build` gives its first values."""
    return Parameter(ms.Tensor(np.zeros(shape), dtype), name, requires_grad=requires_grad)
'''
_CONSTANT = '''
def constant(name):
    """A tensor that the reference computes from nothing."""
    return ms.Tensor(TENSORS[name])
'''
_DRAW = '''
def draw(shape, kind, *numbers):
    """First values like the reference's: constant, normal, cut normal, uniform, or kept ones."""
    if kind == "constant":
        return np.full(shape, numbers[0])
    if kind == "uniform":
        return np.random.uniform(*numbers, shape)
    if kind == "kept":
        return TENSORS[numbers[0]]
    values = np.random.normal(*numbers[:2], shape)
    return np.clip(values, -numbers[2], numbers[2]) if kind == "cut" else values
'''


def module_text(
    name: str,
    builder: str,
    classes: Sequence[ClassCode],
    root: tuple[str, list[Hole]],
    tensors: Iterable[Tensor],
    notes: Sequence[str],
) -> tuple[str, tuple[str, ...]]:
    """The text of the module, and the runtime functions that it uses."""
    text, holes = root
    made = fill(text, lambda number: holes[number].source)
    listed = list(tensors)
    body: list[str] = []
    for code in classes:
        body += ["", "", *_class(code)]
    body += ["", "", *_build(made, listed), ""]
    code_text = "\n".join(body)
    used = tuple(sorted(set(_COMPOSITION.findall(code_text))))
    code_text = _COMPOSITION.sub(r"\1", code_text)
    helpers = [_PARAMETER, _DRAW]
    if "constant(" in code_text:
        helpers.append(_CONSTANT)
    if "Group(" in code_text:
        helpers.append(_GROUP)
    head = _head(name, builder, notes, code_text, used)
    tail = [*head, *("\n" + helper.rstrip() for helper in helpers)]
    return double_quoted("\n".join(tail) + "\n" + code_text), used


def _head(
    name: str, builder: str, notes: Sequence[str], code: str, used: tuple[str, ...]
) -> list[str]:
    lines = ['"""Written by isograd from the graph that torch.export made of', f"{builder}.", ""]
    lines += [*notes, '"""', ""]
    if "OrderedDict(" in code:
        lines.append("from collections import OrderedDict")
    lines += ["from pathlib import Path", "", "import mindspore as ms", "import numpy as np"]
    lines.append("from mindspore import Parameter, nn, ops")
    if used:
        plain = f"from {COMPOSITIONS} import {', '.join(used)}"
        bracketed = f"from {COMPOSITIONS} import ({', '.join(used)})"
        lines += ["", *([plain] if len(plain) <= WIDTH else laid_out(bracketed, 0))]
    lines += ["", f'TENSORS = np.load(Path(__file__).with_name("{name}.npz"))']
    return lines


def _class(code: ClassCode) -> list[str]:
    lines = [f"class {code.name}(nn.Cell):"]
    shown = ", ".join(path or "the network" for path in code.paths[:3])
    more = f" and {len(code.paths) - 3} more" if len(code.paths) > 3 else ""
    lines += [*_comment(f"{shown}{more}"), ""]
    if code.making or code.arguments:
        lines += laid_out(f"def __init__({', '.join(['self', *code.arguments])}):", 4)
        lines.append("        super().__init__()")
        for name in code.kept:
            lines.append(f"        self.{name} = {name}")
        for line in code.making:
            lines += laid_out(line, 8)
        lines.append("")
    for method in code.methods:
        lines += [*_method(method), ""]
    return lines[:-1]


def _comment(text: str) -> list[str]:
    return [f'    """{text}."""'] if len(text) < 90 else [f'    """{text[:86]}…"""']


def _method(method: Method) -> list[str]:
    lines = laid_out(f"def {method.name}({', '.join(['self', *method.arguments])}):", 4)
    if method.evaluation is None:
        for line in method.lines:
            lines += laid_out(line, 8)
        return lines
    lines.append("        if self.training:")
    for line in method.lines:
        lines += laid_out(line, 12)
    for line in method.evaluation:
        lines += laid_out(line, 8)
    return lines


def _build(made: str, tensors: list[Tensor]) -> list[str]:
    groups: dict[tuple[object, ...], list[str]] = {}
    for tensor in tensors:
        is_constant = tensor.is_buffer and not tensor.is_persistent
        counted = tensor.name.endswith("num_batches_tracked")
        if tensor.tied is None and not is_constant and not counted:
            groups.setdefault(_initial(tensor), []).append(tensor.name)
    lines = ["#: The first values of the parameters: how they are drawn, and whose they are."]
    lines.append("INITIAL = [")
    for kind, names in groups.items():
        listed = ", ".join(repr(name) for name in names)
        lines += laid_out(f"({kind!r}, [{listed}]),", 4)
    lines += ["]", "", ""]
    lines += ["def build():", '    """The network with first values like the reference\'s."""']
    lines += laid_out(f"network = {made}", 4)
    for tensor in tensors:
        if tensor.tied is not None:
            lines.append(f"    network.{tensor.name} = network.{tensor.tied}")
    lines += [
        "    parameters = dict(network.parameters_and_names())",
        "    for kind, names in INITIAL:",
        "        for name in names:",
        "            known = parameters[name]",
        "            known.set_data(ms.Tensor(draw(known.shape, *kind), known.dtype))",
        "    return network",
    ]
    return lines


def _initial(tensor: Tensor) -> tuple[object, ...]:
    kind, *numbers = tensor.initial
    if kind == "values":
        return ("kept", *numbers)
    return (kind, *(float(f"{number:.4g}") for number in numbers))

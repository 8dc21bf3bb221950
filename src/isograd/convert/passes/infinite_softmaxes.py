"""Softmaxes of what may hold -inf, where MindSpore's own (2.10, CPU) loses more than the row.

A row of -inf alone gives zeros there in place of NaN, and rows beside it become zeros or numbers
beyond 1: the kernel of the last axis in float32 sums them as one.  Of a row with NaN it makes NaN
of this element alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from isograd.convert import layout
from isograd.convert.file import FileEdit
from isograd.convert.infinities import INFINITY, NAN
from isograd.convert.passes.example import Example
from isograd.convert.passes.infinite_scores import infinities_of, nans_of
from isograd.convert.tree import first_argument
from isograd.knowledge.rewrite import Call, NotRewritten

_LAYER = "torch.nn.Softmax"
#: Functions and the method; torch.nn.functional.softmin and its layer negate what they get.
_FUNCTIONS = frozenset(
    """torch.softmax torch.special.softmax torch.nn.functional.softmax
    torch.Tensor.softmax""".split()
)
SOFTMAXES = _FUNCTIONS | {_LAYER}
_OWN, _RIGHT = "composites.softmax(", "composites.softmax_of_infinities("


class InfiniteSoftmaxes:
    """The softmax of masked scores: attention, of which some query may see no key."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "masked scores",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                scores = (x @ y.T).masked_fill(y @ x.T > 0, float('-inf'))
                return torch.nan_to_num(scores.softmax(dim=-1)) @ y
            """,
        ),
        Example(
            "a layer that is given masked scores",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.attend = nn.Softmax(dim=-1)

                def forward(self, x, y):
                    return self.attend(x.masked_fill(y > 0, -torch.inf)).nan_to_num()
            """,
        ),
    )
    counterexamples = (
        Example(
            "a mask of finite numbers",
            """
            def f(x: torch.Tensor, y: torch.Tensor):
                worst = float('inf')
                return torch.softmax(x.masked_fill(y > 0, -1e9), dim=-1).clamp(max=worst)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the runtime's function, or the layer that calls it."""
        assert isinstance(node, ast.Call)
        found = []
        if file.settings.infinite or INFINITY.pattern.search(file.text.original):
            found.append(infinities_of(file))
        if file.settings.undefined or NAN.pattern.search(file.text.original):
            found.append(nans_of(file))
        if not found:
            return False
        use = file.use(node.func)
        if use is None or not use.is_sure or use.api not in SOFTMAXES:
            return False
        receiver = None
        if use.api == _LAYER:
            given = given_to_layer(node, file)
        elif use.is_member:
            assert isinstance(node.func, ast.Attribute)
            receiver = node.func.value
            given = iter((receiver,))
        else:
            given = filter(None, [first_argument(node, "input")])
        if not any(one.may(part) for part in given for one in found):
            return False
        if use.api == _LAYER:
            file.replace(node.func, file.name("composites.SoftmaxOfInfinities"))
        elif not _write(node, use.api, receiver, file):
            return False
        file.uses += 1
        file.converted += 1
        return True


def _write(node: ast.Call, api: str, receiver: ast.expr | None, file: FileEdit) -> bool:
    entry = file.entry(api)
    call = file.call(node, "" if receiver is None else file.argument(receiver))
    if entry is None or not isinstance(call, Call) or not entry.rewrite.startswith(_OWN):
        return False
    own = replace(entry, rewrite=entry.rewrite.replace(_OWN, _RIGHT))
    result = file.rewritten(own, call)
    if isinstance(result, NotRewritten):
        return False
    layout.write_call(file, node, result.code)
    return True


def given_to_layer(layer: ast.Call, file: FileEdit) -> Iterator[ast.expr]:
    """What is given to a layer, or to calls of the name or the attribute that it is bound to."""
    parent = file.tree.parents.get(layer)
    if isinstance(parent, ast.Call) and parent.func is layer:
        yield from parent.args[:1]
    targets = parent.targets if isinstance(parent, ast.Assign) else []
    names = {getattr(one, "attr", getattr(one, "id", "")) for one in targets} - {""}
    for call in file.tree.of(ast.Call):
        called = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if called in names and call.args:
            yield call.args[0]

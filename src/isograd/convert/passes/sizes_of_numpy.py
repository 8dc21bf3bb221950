"""`nn.Linear(np.prod(shape), 2)`: MindSpore's layers take Python's own integers alone."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.convert.passes.numpy_arrays import is_array, is_of_numpy
from isograd.convert.passes.reach_of_writes import all_values_of
from isograd.knowledge.rewrite import parameters_of

#: Arguments of layers that are integers, or tuples of them; torch refuses others.
_WHOLE = frozenset(
    """in_features out_features in1_features in2_features in_channels out_channels num_features
    num_channels num_groups num_embeddings embedding_dim normalized_shape kernel_size stride padding
    dilation groups output_padding output_size input_size hidden_size num_layers embed_dim num_heads
    d_model nhead dim_feedforward""".split()
)
#: What makes one number of an array, as a function of numpy's or a method; and numpy's integers.
_REDUCING = frozenset("prod sum max min amax amin argmax argmin count_nonzero".split())
_INTEGERS = frozenset("int_ intp int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_DEEPEST = 8


class SizesOfNumpy:
    """Sizes of layers that numpy computes; the call itself is for other passes."""

    kinds = (ast.Call,)
    examples = (
        Example(
            "a product of a shape",
            """
            import numpy as np

            layer = nn.Linear(np.prod((4, 3)), 2)
            """,
        ),
        Example(
            "by a name",
            """
            import numpy as np

            size = np.array((4, 3)).prod()
            layer = nn.Linear(2 * size, out_features=size)
            """,
        ),
        Example(
            "an element of an array",
            """
            import numpy as np

            sizes = np.cumsum([8, 4])
            layer = nn.Linear(3 + sizes[1], 2)
            """,
        ),
    )
    counterexamples = (
        Example(
            "an integer of Python's",
            """
            import numpy as np

            layer = nn.Linear(int(np.prod((4, 3))), 2)
            """,
        ),
        Example(
            "a name that holds something else, too",
            """
            import numpy as np


            def layer(shape, size):
                if size is None:
                    size = np.prod(shape)
                return nn.Linear(4, 2, bias=size > 2)
            """,
        ),
        Example(
            "an element of a list",
            """
            import numpy as np

            sizes = np.cumsum([8, 4]).tolist()
            layer = nn.Linear(sizes[1], 2)
            """,
        ),
        Example(
            "an argument that is no integer",
            """
            import numpy as np

            layer = nn.Dropout(np.max((0.1, 0.2)))
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Make integers of Python's of the numbers."""
        assert isinstance(node, ast.Call)
        api = file.api_of_call(node)
        if not api or file.names.kind(api) != "M" or "int" in file.tree.own_names:
            return False
        for name, given in _by_name(node, api, file):
            if name in _WHOLE and _is_number(given, file, _DEEPEST):
                file.replace(given, f"int({file.argument(given)})")
        return False


def _by_name(node: ast.Call, api: str, file: FileEdit) -> list[tuple[str, ast.expr]]:
    """The arguments of a call before a `*`, with the names of torch's parameters."""
    entry = file.entry(api)
    names = [one.name for one in parameters_of((entry and entry.signature) or "()")]
    found = [(part.arg, part.value) for part in node.keywords if part.arg is not None]
    for name, given in zip(names, node.args, strict=False):
        if isinstance(given, ast.Starred):
            break
        found.append((name, given))
    return found


def _is_number(node: ast.expr, file: FileEdit, depth: int) -> bool:
    """Whether an expression can be nothing but a number that numpy made."""
    if depth == 0:
        return False
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        is_whole = isinstance(node.op, _ARITHMETIC)
        return is_whole and any(_is_number(side, file, depth - 1) for side in sides)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in _INTEGERS:
            return len(node.args) == 1 and is_of_numpy(node, file)
        along_an_axis = len(node.args) > 1 or any(
            part.arg in ("axis", "keepdims") for part in node.keywords
        )
        return name in _REDUCING and not along_an_axis and is_of_numpy(node, file)
    if isinstance(node, ast.Subscript):
        is_element = not isinstance(node.slice, (ast.Slice, ast.Tuple))
        return is_element and is_array(node.value, file) and not _is_list(node.value, file)
    values: list[ast.expr] = []
    if isinstance(node, ast.Name):
        values = all_values_of(node, file)
    elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self":
        values = _values_of_attribute(node, file)
    return bool(values) and all(_is_number(value, file, depth - 1) for value in values)


def _is_list(node: ast.expr, file: FileEdit) -> bool:
    """Whether a list of Python's own numbers was made of an array: `array.tolist()`."""
    values = all_values_of(node, file) if isinstance(node, ast.Name) else [node]
    if isinstance(node, ast.Attribute):
        values = _values_of_attribute(node, file)
    functions = [value.func for value in values if isinstance(value, ast.Call)]
    return any(getattr(function, "attr", "") == "tolist" for function in functions)


def _values_of_attribute(node: ast.Attribute, file: FileEdit) -> list[ast.expr]:
    """All that the class sets an attribute to; none where anything but an assignment does."""
    owner = file.tree.owner(node)
    values = [] if owner is None else file.attribute_values.get((owner, node.attr), [])
    stores = sum(
        part.attr == node.attr and not isinstance(part.ctx, ast.Load)
        for part in file.tree.of(ast.Attribute)
    )
    return values if len(values) == stores else []

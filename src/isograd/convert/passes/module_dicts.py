"""Modules of a ModuleDict by their keys: the static graph knows no attribute of that name."""

from __future__ import annotations

import ast

from isograd.convert import layout
from isograd.convert.analysis.dictionaries import MODULE_DICT, keys_of
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example


class ModuleDicts:
    """`self.parts.embedding` of `self.parts = nn.ModuleDict(dict(embedding=…))`."""

    kinds = (ast.Attribute,)
    examples = (
        Example(
            "a module by an attribute",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.parts = nn.ModuleDict(dict(first=nn.Linear(3, 2), drop=nn.Dropout(0.1)))

                def forward(self, x):
                    parts = self.parts
                    return self.parts.drop(parts.first(x))
            """,
        ),
    )
    counterexamples = (
        Example(
            "a method of the dictionary",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.parts = nn.ModuleDict({"first": nn.Linear(2, 2)})

                def forward(self, x):
                    for part in self.parts.values():
                        x = part(x)
                    return x
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the key."""
        assert isinstance(node, ast.Attribute)
        if node.attr not in file.module_dict_keys or not isinstance(node.ctx, ast.Load):
            return False
        owner = _meant(node.value, file)
        if not isinstance(owner, ast.Attribute) or getattr(owner.value, "id", "") != "self":
            return False
        if node.attr not in _keys(owner, file):
            return False
        layout.write(file, node, f"{file.source(node.value)}['{node.attr}']")
        return True


def _meant(owner: ast.expr, file: FileEdit) -> ast.expr:
    """What a name of the function means, if it is bound once: `m = self.parts`."""
    if not isinstance(owner, ast.Name):
        return owner
    functions = (up for up in file.tree.above(owner) if isinstance(up, ast.FunctionDef))
    function = next(functions, None)
    bound = [
        part
        for part in ast.walk(function or owner)
        if isinstance(part, (ast.Name, ast.arg))
        and owner.id in (getattr(part, "id", ""), getattr(part, "arg", ""))
        and not isinstance(getattr(part, "ctx", None), ast.Load)
    ]
    made = file.tree.parents[bound[0]] if len(bound) == 1 else None
    return made.value if isinstance(made, ast.Assign) and made.targets == bound else owner


def _keys(owner: ast.Attribute, file: FileEdit) -> set[str]:
    """The keys with which the class around makes the one dictionary that the attribute holds."""
    around = file.tree.owner(owner)
    if around is None:
        return set()
    values = file.attribute_values.get((around, owner.attr), [])
    made = values[0] if len(values) == 1 else None
    if not isinstance(made, ast.Call) or file.api_of_call(made) != MODULE_DICT:
        return set()
    return {key for given in made.args[:1] for key in keys_of(given)}

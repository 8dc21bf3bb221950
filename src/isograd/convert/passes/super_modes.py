"""`super().train(mode)` in a class's own `train`: the base's, not MindSpore's name of both."""

from __future__ import annotations

import ast

from isograd.convert.analysis.class_bases import has_own_train
from isograd.convert.file import FileEdit
from isograd.convert.passes.example import Example
from isograd.scan.values import ClassInfo

_TRAIN = "torch.nn.Module.train"


class SuperModes:
    """A class that keeps some of its layers in inference.

    Its base in the port calls `train` for MindSpore's `set_train`: `super().set_train(mode)` within
    `train` would never end.
    """

    kinds = (ast.Call,)
    examples = (
        Example(
            "a norm that stays in inference",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.norm = nn.BatchNorm1d(3)

                def train(self, mode=True):
                    super().train(mode)
                    self.norm.eval()
                    return self
            """,
        ),
    )
    counterexamples = (
        Example(
            "another method",
            """
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.norm = nn.BatchNorm1d(3)

                def freeze(self):
                    super().train(False)
            """,
        ),
    )

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Leave the call as it is."""
        assert isinstance(node, ast.Call)
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "train":
            return False
        if not isinstance(function.value, ast.Call):
            return False
        if getattr(function.value.func, "id", "") != "super":
            return False
        use = file.use(function)
        owner = file.tree.owner(node)
        info = None if owner is None else file.class_info(owner)
        if use is None or use.api != _TRAIN or owner is None or info is None:
            return False
        bases = [file.use(base) for base in owner.bases]
        from_torch = any(base is not None and base.api.startswith("torch.nn.") for base in bases)
        of_project = any(base in file.settings.with_modes for base in info.bases)
        inherits = any(isinstance(base, ClassInfo) and has_own_train(base) for base in info.bases)
        if "train" not in info.methods or not (from_torch or of_project or inherits):
            return False
        file.uses += 1
        file.converted += 1
        file.forget(function)
        return True

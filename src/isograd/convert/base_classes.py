"""What a class of the port is derived from."""

from __future__ import annotations

import ast

from isograd.convert.analysis.class_bases import has_own_train
from isograd.convert.file import FileEdit
from isograd.knowledge.entry import Entry
from isograd.scan.values import ClassInfo, is_module


def base_class(node: ast.AST, api: str, entry: Entry | None, file: FileEdit) -> str:
    """MindSpore's class to derive from, where the class's own code may be as it is."""
    owner = file.tree.parents[node]
    assert isinstance(owner, ast.ClassDef)
    info = file.class_info(owner)
    if file.is_shaped(api) or info is None:
        return file.value(entry) if entry is not None and entry.value else ""
    if api == "torch.nn.Module":
        return file.name("composites.ModeCell") if overrides_train(info, file) else ""
    if api == "torch.nn.Sequential":
        holds = "SequentialOfAttributes" if _sets_children(owner, info) else ""
        return file.name(f"composites.{holds}" if holds else "nn.SequentialCell")
    return file.name(entry.base) if entry is not None and entry.base else ""


def overrides_train(info: ClassInfo, file: FileEdit) -> bool:
    """Whether a class, one that it is derived from, or one derived from it has a `train`."""
    return has_own_train(info) or info in file.settings.with_modes


def _sets_children(node: ast.ClassDef, info: ClassInfo) -> bool:
    """Whether a class may give itself children beside those of its base's constructor."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") == "self":
            if isinstance(part.ctx, ast.Store):
                held = info.attributes.get(part.attr)
                if held is None or is_module(held):
                    return True
            elif part.attr in ("add_module", "register_module"):
                return True
        elif isinstance(part, ast.Call) and getattr(part.func, "id", "") == "setattr":
            return True
    return False

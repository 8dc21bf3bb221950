"""Settings of layers that are set after the layers are made, where nothing shows the layer."""

from __future__ import annotations

import ast

from isograd.convert.file import FileEdit
from isograd.convert.model import Level
from isograd.convert.places import place

_ADVICE = "If it is a layer, make the layer with this value instead."


class LayerSettings:
    """`m.eps = 1e-3`, `setattr(m, "stride", 1)`, which MindSpore's layers read when made."""

    kinds = (ast.Attribute, ast.Call)

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Report the place, unless all layers with such a setting are the runtime's."""
        layers = file.settings.layers
        name = file.facts.unknown_sets.get(place(node), "")
        api = "" if layers.every else layers.late.get(name, "")
        if api:
            message = (
                f"a {api.rpartition('.')[2]} of MindSpore does not see {name} that is set later"
            )
            file.finding(node, "layer-setting", message, _ADVICE, level=Level.LOOK, api=api)
        return False

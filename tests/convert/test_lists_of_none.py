"""Lists of modules are MindSpore's own unless something may put None into one."""

from __future__ import annotations

import pytest
from tests.convert.support import port_of

_NETWORK = """from torch import nn


class Net(nn.Module):
    def __init__(self, extra):
        super().__init__()
        self.layers = nn.ModuleList([extra])

    def stages(self, x):
        found = []
        y = None
        for layer in self.layers:
            y = layer(x)
            {put}
        {back}
"""


@pytest.mark.parametrize(
    ("put", "back", "holds"),
    [
        pytest.param("found.append(y)", "return found", False, id="results of its own"),
        pytest.param(
            "found.extend([y for y in (x, y)])",
            "return found if x is y else (y, found)",
            False,
            id="results beside another",
        ),
        pytest.param("found.append(y)", "return nn.ModuleList(found)", True, id="modules"),
        pytest.param("found.append(y)", "self.made = found", True, id="an attribute takes them"),
        pytest.param("found.append(y)", "take(found)", True, id="another function takes them"),
        pytest.param(
            "found.append(y)",
            "return found\n\n    def made(self, x):\n        return nn.ModuleList(self.stages(x))",
            True,
            id="the file takes what it returns",
        ),
        pytest.param("self.layers.append(y)", "return y", True, id="the list of modules itself"),
        pytest.param(
            "self.layers.append(x if y is None else y)",
            "return y",
            False,
            id="not None by question",
        ),
        pytest.param(
            "self.layers.append(y if y is None else x)", "return y", True, id="None by question"
        ),
        pytest.param(
            "y = [None] if y is None else y\n            self.layers.extend(x if y is None else y)",
            "return y",
            True,
            id="a list that holds None, by question",
        ),
    ],
)
def test_what_may_put_none_into_a_list_of_modules(put: str, back: str, holds: bool) -> None:
    port, _ = port_of(_NETWORK.format(put=put, back=back))
    assert ("self.layers = compat.ModuleList([extra])" in port) is holds
    assert ("self.layers = nn.CellList([extra])" in port) is not holds

"""What attributes hold, by what all files of a project bind: which name a layer's weight has."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both

_LAYERS = """
from functools import partial
from torch import nn


def make_conv(size, kernel=1, depthwise=False):
    if depthwise:
        return nn.Conv2d(size, size, kernel, groups=size)
    layer = nn.Conv2d(size, size, kernel)
    return layer


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.proj = nn.Linear(size, size)


class Mlp(nn.Module):
    def __init__(self, size, use_conv=False):
        super().__init__()
        linear = partial(nn.Conv2d, kernel_size=1) if use_conv else nn.Linear
        self.fc = linear(size, size)
        self.norm = nn.LayerNorm(size)
"""
_NET = """
import torch
from torch import nn
from layers import Attention, Mlp, make_conv


class Block(nn.Module):
    def __init__(self, size, attention=Attention):
        super().__init__()
        self.attn = attention(size)
        self.mlp = Mlp(size) if size else nn.Identity()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = []
        for _ in range(2):
            blocks.append(Block(4))
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Sequential()
        self.head.add_module("conv", make_conv(4))
        self.norm = nn.BatchNorm1d(4)
        self.start()

    @torch.no_grad()
    def start(self):
        for number, block in enumerate(self.blocks):
            block.attn.proj.weight.fill_(number + 1)
            block.mlp.fc.bias.fill_(number + 3)
            block.mlp.norm.weight.fill_(number + 5)
        self.head.conv.weight.fill_(7)

    def numbers(self):
        found = [float(self.head.conv.weight.sum())]
        for block in self.blocks:
            found.append(float(block.attn.proj.weight.sum()))
            found.append(float(block.mlp.fc.bias.sum() + block.mlp.norm.weight.sum()))
        return found
"""


def test_layers_are_found_through_classes_lists_and_factories_of_other_files(
    tmp_path: Path,
) -> None:
    folder, _ = converted(tmp_path, {"layers.py": _LAYERS, "net.py": _NET})
    port = (folder / "net.py").read_text()
    assert "layer_attribute" not in port
    assert "block.mlp.norm.gamma" in port
    code = "import json, net; print(json.dumps(net.Net().numbers()))"
    expected, found = run_both(tmp_path, folder, code)
    assert found == expected


_KNOWN = """
from torch import nn

class Part(nn.Module):
    def __init__(self, size, layer=nn.Linear):
        super().__init__()
        self.proj = layer(size, size)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.part = Part(4)
        self.parts = nn.ModuleList([Part(4)])

    def weight(self):
        return self.part.proj.weight

    def weights(self):
        return [part.proj.weight for part in self.parts]
"""
_EACH_ASKED = 'compat.layer_attribute(part.proj, "weight")'


def test_a_part_that_can_be_nothing_else_is_read_as_it_is() -> None:
    port, _ = port_of(_KNOWN)
    assert "self.part.proj.weight" in port
    assert "[part.proj.weight for part" in port


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("other = Part(4, layer=nn.LayerNorm)", id="a class by name"),
        pytest.param("other = Part(4, nn.LayerNorm)", id="a class by place"),
        pytest.param('given = {"layer": nn.LayerNorm}', id="a class in a dictionary"),
        pytest.param('given = dict(layer=find("norm"))', id="a class that is looked up"),
        pytest.param(
            """
            def change(net):
                net.part.proj = nn.LayerNorm(4)
            """,
            id="set from outside",
        ),
        pytest.param(
            """
            def change(net):
                setattr(net.part, "proj", nn.LayerNorm(4))
            """,
            id="set from outside by setattr",
        ),
        pytest.param(
            """
            class Mean(Part):
                def __init__(self):
                    super().__init__(4)
                    self.proj = nn.LayerNorm(4)

            class Other(Net):
                def __init__(self):
                    super().__init__()
                    self.part = Mean()
                    self.parts.append(Mean())
            """,
            id="set by a derived class",
        ),
        pytest.param(
            """
            def make():
                made = Net()
                made.part = external.Part()
                made.parts.append(external.Part())
                return made
            """,
            id="a part that is not known",
        ),
        pytest.param(
            """
            def make(size, kind=nn.LayerNorm):
                return Part(size, kind)
            """,
            id="a parameter handed on",
        ),
        pytest.param(
            """
            class Wide(Part):
                def __init__(self, size, kind=nn.Linear):
                    super().__init__(size, kind)

            other = Wide(4, kind=nn.LayerNorm)
            """,
            id="a parameter handed up",
        ),
        pytest.param(
            """
            class Wide(Net):
                def __init__(self, kind=nn.Linear):
                    super().__init__()
                    self.part = self.make(kind)

                def make(self, layer=nn.Linear):
                    return Part(4, layer)

            other = Wide(kind=nn.LayerNorm)
            """,
            id="a parameter of a method",
        ),
        pytest.param(
            """
            def make(part=Part, kind=nn.Linear):
                return part(4, kind)

            other = make(kind=nn.LayerNorm)
            """,
            id="a parameter of a class that is handed in",
        ),
        pytest.param(
            """
            from functools import partial

            make = partial(Part, 4, nn.LayerNorm)
            """,
            id="an argument of a partial",
        ),
        pytest.param("other = Part(*[4], nn.LayerNorm)", id="a place that is not known"),
    ],
)
def test_where_a_norm_may_be_the_run_finds_the_name(more: str) -> None:
    port, _ = port_of(_KNOWN + textwrap.dedent(more))
    assert _EACH_ASKED in port


@pytest.mark.parametrize(
    "bound",
    [
        pytest.param("self.parts.append(Norms())", id="put into a list"),
        pytest.param("self.parts[0] = Norms()", id="an element that is set"),
        pytest.param(
            "parts = [Part()]; add(parts); self.parts = nn.ModuleList(parts)", id="handed on"
        ),
        pytest.param('setattr(self, f"{name}s", Norms())', id="a name that is computed"),
        pytest.param("self.add_module(name, Norms())", id="a child by a computed name"),
        pytest.param("self.parts = parts", id="handed in"),
        pytest.param("self.parts, self.count = make(2)", id="one of several"),
        pytest.param("self._modules[name] = Norms()", id="the dictionary of children"),
    ],
)
def test_a_list_that_may_hold_others_is_asked(bound: str) -> None:
    port, _ = port_of(
        f"""
        from torch import nn

        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(4, 4)

        class Norms(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.LayerNorm(4)

        class Net(nn.Module):
            def __init__(self, name, parts):
                super().__init__()
                self.norm = nn.LayerNorm(4)
                self.parts = nn.ModuleList([Part()])
                {bound}

            def weights(self):
                return [part.proj.weight for part in self.parts]
        """
    )
    assert _EACH_ASKED in port


@pytest.mark.parametrize(
    "given", ["layer=nn.LayerNorm", "nn.LayerNorm", '**{"layer": nn.LayerNorm}']
)
def test_a_default_that_a_call_replaces_is_not_all(given: str) -> None:
    port, _ = port_of(_KNOWN + f"other = Part(4, {given})")
    assert 'compat.layer_attribute(self.part.proj, "weight")' in port


def test_what_a_class_looks_up_is_not_known() -> None:
    port, _ = port_of(
        _KNOWN.replace(
            "class Net",
            """    def __getattr__(self, name):
        return super().__getattr__(name)

class Net""",
        )
    )
    assert _EACH_ASKED in port


def test_an_isinstance_of_a_layer_tells_more_than_what_is_bound() -> None:
    port, _ = port_of(
        _KNOWN
        + """
def weight(part: Part):
    other = Part(4, nn.LayerNorm)
    if isinstance(part.proj, nn.LayerNorm):
        return part.proj.weight
"""
    )
    assert "return part.proj.gamma" in port


def test_a_name_behind_an_isinstance_is_of_that_class() -> None:
    port, _ = port_of(
        _KNOWN
        + """
def weight(net):
    norm = nn.LayerNorm(4)
    if isinstance(net, Part):
        return net.proj.weight
    return net.norm.weight
"""
    )
    assert "return net.proj.weight" in port
    assert 'compat.layer_attribute(net.norm, "weight")' in port


def test_starting_values_of_a_layer_that_is_found_are_mindspores_own() -> None:
    port, _ = port_of(
        _KNOWN
        + """
class Started(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Part(4) for _ in range(2)])
        for part in self.parts:
            nn.init.zeros_(part.proj.weight)
"""
    )
    assert "ops.assign(part.proj.weight" in port


_FUSED = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def fuse(self):
        made = nn.Linear(4, 4)
        made.weight.data.copy_(torch.arange(16.0).reshape(4, 4))
        made.bias.data.fill_(3)
        return made


class Net(nn.Module):
    def __init__(self, count=2):
        super().__init__()
        self.register_buffer("weight", torch.zeros(2))
        self.head = Part() if count else nn.Identity()
        self.parts = nn.ModuleList([Part() for _ in range(count)])

    @torch.no_grad()
    def fuse(self):
        head, other = self.head.fuse(), None
        made = self.head.fuse()
        made.weight += head.weight
        made.weight /= 4
        for part in self.parts:
            part.norm.weight *= 3
        return made


def numbers():
    net = Net()
    made = net.fuse()
    return [made.weight.tolist(), [part.norm.weight.tolist() for part in net.parts]]
"""


def test_weights_that_change_are_those_of_the_layer_that_a_method_makes(tmp_path: Path) -> None:
    folder, _ = converted(tmp_path, {"net.py": _FUSED})
    port = (folder / "net.py").read_text()
    assert "set_buffer" not in port
    code = "import json, net; print(json.dumps(net.numbers()))"
    expected, found = run_both(tmp_path, folder, code)
    assert found == expected

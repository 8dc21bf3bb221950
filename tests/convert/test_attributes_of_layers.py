"""Every public attribute of an instance of torch's layers, beside the port's or its finding."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

import torch
from tests.convert.support import converted, run_original, run_port

_LAYERS = (Path(__file__).with_name("layers.txt")).read_text(encoding="utf-8").splitlines()
_ABSTRACT = frozenset(
    """Module Container ModuleList ModuleDict Sequential ParameterList ParameterDict RNNBase
    RNNCellBase CrossMapLRN2d DataParallel SyncBatchNorm NLLLoss2d""".split()
)
#: What is torch's own bookkeeping, no setting: of the fast path of transformers, names for prints.
_INTERNAL = frozenset(
    """enable_nested_tensor mask_check use_nested_tensor activation_relu_or_gelu name norm
    num_batches_tracked""".split()
)
_TELL = """
import json
import net

def plain(v):
    if v is None or isinstance(v, (bool, str)):
        return repr(v)
    if isinstance(v, (int, float)):
        return f"{v:g}"
    if isinstance(v, (list, tuple)):
        return [plain(one) for one in v]
    if type(v).__name__ in ("Parameter", "Tensor", "ParameterTensor"):
        return ["tensor", list(v.shape)]
    return "other"

def told(case):
    try:
        return plain(case())
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:100]

print(json.dumps([told(case) for case in net.CASES]))
"""


def _attributes(layer: str) -> list[str]:
    """What an instance holds by a public name, but for what a lazy one has not made yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = eval(f"torch.nn.{layer}", {"torch": torch, "nn": torch.nn})
    names = {*vars(made), *made._parameters, *made._buffers} - _INTERNAL - {"training"}
    return sorted(name for name in names if not name.startswith("_"))


def _cases() -> list[tuple[str, str]]:
    return [(layer, name) for layer in _LAYERS for name in _attributes(layer)]


def test_the_table_names_every_layer() -> None:
    named = {layer.partition("(")[0] for layer in _LAYERS}
    layers = {
        name
        for name, value in vars(torch.nn).items()
        if inspect.isclass(value) and issubclass(value, torch.nn.Module)
    }
    assert {name for name in layers - named - _ABSTRACT if not name.startswith("Lazy")} == set()


def test_attributes_of_layers_are_torchs_or_reported(tmp_path: Path) -> None:
    cases = _cases()
    lines = ["import torch", "import torch.nn as nn", ""]
    for number, (layer, name) in enumerate(cases):
        lines += [f"def case{number}():", f"    m = nn.{layer}", f"    return m.{name}"]
    lines.append(f"CASES = [{', '.join(f'case{number}' for number in range(len(cases)))}]")
    port, report = converted(tmp_path, {"net.py": "\n".join(lines) + "\n"})
    expected = json.loads(run_original(tmp_path, _TELL))
    found = json.loads(run_port(port, _TELL))
    reported = {one.line for one in report.findings}
    wrong = [
        (*case, own, other)
        for number, (case, own, other) in enumerate(zip(cases, expected, found, strict=True))
        if own != other and 6 + 3 * number not in reported
    ]
    assert wrong == []


def test_an_attribute_alone_makes_the_layer_the_runtimes(tmp_path: Path) -> None:
    """Each in a project of its own, in the forms in which networks read them."""
    code = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool, self.drop, self.norm = nn.MaxPool2d(2, 2), nn.Dropout2d(0.3), nn.LayerNorm(3)
            self.act = nn.ReLU(inplace=True)
            self.rnn = nn.LSTM(2, 3)

    def told():
        net, found = Net(), []
        for m in net.modules():
            if isinstance(m, nn.MaxPool2d):
                found.append((m.padding, m.ceil_mode, m.dilation, m.stride))
            elif isinstance(m, nn.LSTM):
                found.append((m.input_size, m.mode, m.bias, m.proj_size, m.hidden_size))
        found.append((net.drop.p, net.norm.elementwise_affine, net.act.inplace))
        bn = nn.BatchNorm2d(3)
        found.append((bn.affine, bn.track_running_stats, hasattr(bn, "affine")))
        found.append(hasattr(net.act, "inplace"))
        found.append(getattr(bn, "track_running_stats", None))
        return found
    """
    port, _ = converted(tmp_path, {"net.py": code})
    run = "import json, net; print(json.dumps(net.told()))"
    assert json.loads(run_port(port, run)) == json.loads(run_original(tmp_path, run))


_WITHOUT_WEIGHT = """
from functools import partial
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, norm_layer=None, **settings):
        super().__init__()
        norm_layer = norm_layer or partial(nn.BatchNorm2d, affine=False)
        self.norm = norm_layer(4)
        self.other = nn.GroupNorm(2, 4, **settings)
        self.own = nn.BatchNorm1d(3, 1e-3, 0.1, bool(settings) is False)


class Own(nn.LayerNorm):
    def asked(self):
        return getattr(self, "weight", 1) is None, hasattr(self, "bias"), self.bias is None


def init(m):
    if isinstance(m, nn.BatchNorm1d) and m.weight is not None:
        nn.init.constant_(m.weight, 2.0)
    elif getattr(m, "bias", None) is not None:
        nn.init.constant_(m.bias, 3.0)


def run():
    found = []
    for block in (Block(), Block(affine=False), Block(nn.BatchNorm2d)):
        block.apply(init)
        for m in (block.norm, block.other, block.own):
            held = [getattr(m, name, 0) for name in ("weight", "bias")]
            held += [m.weight, m.bias]
            found.append([None if one is None else one.sum().item() for one in held])
    found += [Own(3).asked(), Own(3, elementwise_affine=False).asked()]
    return [*found, nn.Bilinear(2, 2, 2, bias=False).bias is None]
"""


def test_a_norm_without_weight_has_none_there(tmp_path: Path) -> None:
    """However its class comes to the call; what is made with a weight stays MindSpore's own."""
    port, _ = converted(tmp_path, {"net.py": _WITHOUT_WEIGHT})
    code = "import json, net\nprint(json.dumps(net.run()))\n"
    assert run_port(port, code) == run_original(tmp_path, code)


_NORMS = """
from torch import nn

net = nn.Linear(2, 2)
norms = [nn.GroupNorm(2, 4, affine=False), nn.BatchNorm2d(4)]
print({})
"""


@pytest.mark.parametrize(
    ("asked", "native"),
    [
        ("net.weight.shape", "nn.GroupNorm(2, 4, affine=False)"),
        ("[m.weight is None for m in norms]", "nn.BatchNorm2d(4)"),
    ],
)
def test_a_norm_stays_mindspores_where_nothing_asks_for_an_absent_weight(
    asked: str, native: str, tmp_path: Path
) -> None:
    """Weights of other layers show none; beside a norm without weight, others stay as they are."""
    port, _ = converted(tmp_path, {"net.py": _NORMS.format(asked)})
    assert native in (port / "net.py").read_text()

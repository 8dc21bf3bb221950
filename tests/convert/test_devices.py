"""`device.type` is asked of what holds a device, which a tensor of MindSpore's names by a text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of, run_both, run_original, run_port

_CODE = """
import torch
from torch import nn

x = torch.ones(2)
device = x.device
found = [device.type == "cpu", device.index]


def narrow(t):
    d = t.device
    return 1 if d.type in ("cpu", "mps") else 2


def asked(device):
    return device.type, f"on {device.type}"


def annotated(device: torch.device):
    return [device.type]


class Loss:
    def __init__(self, model, other):
        device = next(model.parameters()).device
        self.device = device
        self.other = other
        self.own = torch.device("cpu")

    def __call__(self):
        return self.device.type == "mps", self.other.type != "cuda", self.own.type


class Net(nn.Module):
    @property
    def device(self):
        return torch.device("cpu")

    def forward(self, x):
        n, device = x.shape[0], x.device
        return x * n if device.type == "cpu" else x


def run():
    made = torch.device("cpu")
    model = nn.Linear(1, 1)
    found.append([narrow(x), asked(made), asked(x.device), annotated(x.device)])
    found.append([Loss(model, x.device)(), Loss(model, made)(), Net().device.type])
    return found + Net()(x).tolist()
"""


def test_a_device_that_is_held_has_a_type(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _CODE})
    expected, found = run_both(tmp_path, port, "import json, net\nprint(json.dumps(net.run()))\n")
    assert found == expected


def test_what_has_more_than_a_device_is_left() -> None:
    port, _ = port_of("""
    import torch


    def build(cfg, event, x: torch.Tensor):
        own = torch.device("cpu")
        return cfg.type, cfg.name, event.type == "key", own.type, x.type()
    """)
    assert 'return cfg.type, cfg.name, event.type == "key", own.type, ' in port


_COMPILED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRUCell(6, 6)

    def forward(self, x):
        b, n, d, device = *x.shape, x.device
        rows, place = x.shape[0], x.device
        s = self.gru(x.reshape(-1, d), x.reshape(-1, d) * rows).reshape(b, -1, d)
        where = "cuda" if x.is_cuda else "cpu"
        kind = 2 if device.type == "cpu" else 3
        return s.sum(-1) * 0 + torch.ones(n, device=where) * kind
"""


def test_a_device_beside_sizes_and_is_cuda_compile(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _COMPILED})
    found = run_port(
        port,
        """
        import net, mindspore as ms, numpy as np
        print(ms.jit(net.Net().construct)(ms.Tensor(np.ones((2, 4, 6), "f4"))).asnumpy().tolist())
        """,
    )
    assert found == run_original(
        tmp_path, "import net, torch\nprint(net.Net()(torch.ones(2, 4, 6)).tolist())\n"
    )


_STARRED = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, size=3):
        b, c, d, device, size, = *x.shape, x.device, size
        first, *_, where = *x.shape, x.device
        there, *rest, k = x.device, *x.shape, 5
        *most, last = *x.shape, x.device
        rows, own, dtype = x.shape[0], x.device, x.dtype
        y = x.reshape(b, c * d) * size + torch.ones(first, 1, device=there) * len(rest) * k
        return y.reshape(rows, -1).to(dtype) + torch.ones(d).expand(*most).sum((1, 2)).unsqueeze(1)
"""


def test_a_device_beside_sizes_that_a_star_takes_compiles(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _STARRED})
    found = run_port(
        port,
        """
        import net, mindspore as ms, numpy as np
        print(ms.jit(net.Net().construct)(ms.Tensor(np.ones((2, 4, 6), "f4"))).asnumpy().tolist())
        """,
    )
    assert found == run_original(
        tmp_path, "import net, torch\nprint(net.Net()(torch.ones(2, 4, 6)).tolist())\n"
    )


@pytest.mark.parametrize(
    "line", ["if 1: a, device = x.shape[0], x.device", "x, device = x + 1, x.device"]
)
def test_a_device_beside_sizes_stays_where_it_cannot_be_parted(line: str) -> None:
    port, _ = port_of(f"import torch\n\n\ndef f(x: torch.Tensor):\n    {line}\n    return device\n")
    assert line in port


_MOVES = """
import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def run(device: torch.device, other):
    torch.manual_seed(0)
    net = nn.Linear(2, 2)
    net.to(DEVICE)
    net = net.to(device=device, memory_format=torch.preserve_format)
    x = torch.ones(2, 2)
    x = x.to(DEVICE, non_blocking=True)
    y = x.to(device, torch.float64).to(other)
    return [list(net(x).shape), str(y.dtype).split(".")[-1].lower()]


def found():
    return run(torch.device("cpu"), torch.float16) + run(torch.device("cpu"), "cpu")
"""


def test_what_is_moved_to_devices_stays_where_it_is(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": _MOVES})
    text = (port / "net.py").read_text(encoding="utf-8")
    left = (" net.to(", " x.to(", "module_to", "net = net", "x = x", "\n    net\n")
    assert [part for part in left if part in text] == []
    script = "import json, net\nprint(json.dumps(net.found()))\n"
    expected, found = run_both(tmp_path, port, script)
    assert found == expected


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param("kind = torch.float16", id="a dtype"),
        pytest.param("kind = 'cpu' if x.ndim else torch.float16", id="a dtype in one branch"),
        pytest.param("kind = 'cpu'\n    kind = choose()", id="bound again to what is not known"),
        pytest.param("kind, _ = choose()", id="a part of what is not known"),
        pytest.param("class Held:\n        kind = 'cpu'", id="an attribute of a class"),
        pytest.param("kind = 'cpu'\n    from choices import kind", id="what an import brings"),
        pytest.param(
            "kind = 'cpu'\n    choose(lambda kind: x.to(kind))\n    x = choose()",
            id="a lambda's own",
        ),
    ],
)
def test_what_may_be_a_dtype_is_asked_when_it_runs(binding: str) -> None:
    port, _ = port_of(f"""
    import torch


    def f(x: torch.Tensor, choose):
        {binding.replace(chr(10), chr(10) + "    ")}
        return x.to(kind)
    """)
    assert re.search(r"(return|kind:) x\b", port) is None


def test_a_name_that_may_be_bound_to_itself_is_read() -> None:
    port, _ = port_of("""
    import torch


    def f(x: torch.Tensor, fits):
        place = x.device
        place = place if fits else "cpu"
        return x.to(place)
    """)
    assert "return x\n" in port

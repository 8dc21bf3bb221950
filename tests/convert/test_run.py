"""Files and folders: what is mirrored, what is kept byte for byte, what is refused."""

from __future__ import annotations

import ast
import os
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.convert.support import converted, run_port, write_all

from isograd.convert import Level, Options, convert_path
from isograd.convert.analysis.layers import Layers
from isograd.convert.document import document
from isograd.convert.runtime_uses import reasons_of
from isograd.errors import UsageError
from isograd.knowledge.marks import mark
from isograd.knowledge.store import load_knowledge
from isograd.report.render_text import render_text

NET = (
    "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
)


def test_a_package_is_mirrored_with_its_assets(tmp_path: Path) -> None:
    port, report = converted(
        tmp_path,
        {
            "net/__init__.py": "from .models import Net\nfrom .parts.block import Block, WIDTHS\n",
            "net/models.py": "from torch import nn\nfrom .parts import block\n\n\n"
            "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.block = block.Block()\n\n    def forward(self, x):\n"
            "        return self.block.forward(x)\n",
            "net/parts/__init__.py": "",
            "net/parts/block.py": "import torch\n\nWIDTHS = [1, 2]\n\n\n"
            "class Block(torch.nn.Module):\n"
            "    def forward(self, x):\n        return torch.special.expit(x).max(dim=1).values\n",
            "net/data/table.bin": "bytes",
            "README.md": "import torch",
            "empty/.keep": "",
        },
    )
    assert (port / "net/data/table.bin").read_text() == "bytes"
    assert (port / "README.md").read_text() == "import torch"
    assert (port / "empty/.keep").is_file()
    assert (port / "net/__init__.py").read_bytes() == (
        tmp_path / "original/net/__init__.py"
    ).read_bytes()
    assert "from .. import torch_semantics as compat" in (port / "net/parts/block.py").read_text()
    assert [file for file, _ in report.compositions] == ["net/torch_semantics.py"]
    assert not report.needs_action
    said = run_port(
        port,
        """
        import mindspore, numpy, net
        x = mindspore.Tensor(numpy.array([[0.0, 100.0], [-100.0, 0.0]], numpy.float32))
        print(net.Net()(x).asnumpy().tolist())
        """,
    )
    assert said.strip() == "[1.0, 0.5]"


def test_a_single_file_lies_beside_its_compositions(tmp_path: Path) -> None:
    write_all(
        tmp_path, {"a.py": "import torch\n\n\ndef f(x):\n    return torch.logspace(0, 1, 3)\n"}
    )
    convert_path(tmp_path / "a.py", tmp_path / "out" / "b.py")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "b.py",
        "torch_semantics.py",
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b"x = 1\r\ny = '\xc3\xa4'\r\n",
        b"\xef\xbb\xbfimport os\n\tx",
        b"# -*- coding: latin-1 -*-\nname = '\xe4'\n",
        b"def f(x):\n    return x.view(1)\n",
        b"",
        b"import numpy as np\rx = np.exp(1)\r",
    ],
)
def test_a_file_without_torch_keeps_its_bytes(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_bytes(raw)
    convert_path(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "x.py").read_bytes() == raw


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"import torch\r\nx = torch.exp(y)  # \xc3\xa4\r\n", b"ops.exp(y)  # \xc3\xa4\r\n"),
        (
            b"# coding: latin-1\nimport torch\nx = '\xe4', torch.exp(y)\n",
            b"x = '\xe4', ops.exp(y)\n",
        ),
        (b"\xef\xbb\xbfimport torch\nx = torch.exp(y)", b"ops.exp(y)"),
        ("import torch\nx = 'ä', torch.exp(ü), 'ö'\n".encode(), "'ä', ops.exp(ü), 'ö'\n".encode()),
    ],
)
def test_line_ends_and_encodings_stay(tmp_path: Path, before: bytes, after: bytes) -> None:
    (tmp_path / "x.py").write_bytes(before)
    convert_path(tmp_path / "x.py", tmp_path / "out")
    port = (tmp_path / "out" / "x.py").read_bytes()
    assert port.endswith(after)
    assert port.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
    assert (b"\r\n" in port) == (b"\r\n" in before)
    assert b"\n" not in port.replace(b"\r\n", b"") or b"\r\n" not in before


def test_converting_twice_changes_nothing_more(tmp_path: Path) -> None:
    code = (
        "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
        "class Net(nn.Module):\n    def __init__(self, norm=nn.LayerNorm):\n"
        "        super().__init__()\n        self.norm = norm(4)\n"
        "        self.drop = nn.Dropout(0.1)\n\n"
        "    def forward(self, x):\n        x = self.drop(F.gelu(self.norm(x)))\n"
        "        x.add_(1)\n        y = torch.linalg.ldl_factor(x)\n"
        "        return x.view(-1).size(0)\n"
    )
    port, _ = converted(tmp_path, {"net.py": code})
    report = convert_path(port, tmp_path / "again")
    assert (tmp_path / "again" / "net.py").read_bytes() == (port / "net.py").read_bytes()
    assert report.converted == 0


def test_what_cannot_be_parsed_is_carried_over_and_told(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"bad.py": "import torch\nprint 'x'\n", "good.py": NET})
    assert (port / "bad.py").read_text() == "import torch\nprint 'x'\n"
    assert [finding.code for finding in report.findings] == ["syntax-error"]
    assert report.needs_action


def test_out_is_never_overwritten_unasked(tmp_path: Path) -> None:
    source = write_all(tmp_path / "a", {"net.py": NET})
    write_all(tmp_path / "b", {"mine.txt": "kept"})
    with pytest.raises(UsageError, match="is there already"):
        convert_path(source, tmp_path / "b")
    assert (tmp_path / "b" / "mine.txt").read_text() == "kept"
    convert_path(source, tmp_path / "b", Options(force=True))
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["net.py"]


@pytest.mark.parametrize("out", ["a", "a/out", "."])
def test_nothing_is_written_into_the_original(tmp_path: Path, out: str) -> None:
    source = write_all(tmp_path / "a", {"net.py": NET})
    with pytest.raises(UsageError):
        convert_path(source, tmp_path / out, Options(force=True))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "net.py"]


def test_out_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_all(tmp_path / "a", {"net.py": NET})
    monkeypatch.setattr("isograd.convert.run.write_generated", _fail)
    with pytest.raises(OSError, match="disk is full"):
        convert_path(source, tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def _fail(*_: object) -> None:
    raise OSError("disk is full")


def test_links_out_of_the_project_are_left_out_and_told(tmp_path: Path) -> None:
    source = write_all(tmp_path / "a", {"net.py": NET})
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "secret.txt", source / "link.txt")
    os.symlink(source, source / "loop")
    report = convert_path(source, tmp_path / "b")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["net.py"]
    assert [(finding.code, finding.level) for finding in report.findings] == [
        ("link", Level.LOOK),
        ("link", Level.LOOK),
    ]


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    name = "a\x1b[31m<b>&.py"
    source = write_all(tmp_path / "a", {name: NET, "ok.py": NET})
    report = convert_path(source, tmp_path / "b")
    assert {file.file for file in report.files} == {name, "ok.py"}
    assert (tmp_path / "b" / name).is_file()


def test_check_writes_nothing(tmp_path: Path) -> None:
    source = write_all(tmp_path / "a", {"net.py": NET})
    report = convert_path(source, None)
    assert report.out == ""
    assert report.converted == report.uses > 0
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_re_exported_names_of_torch_are_followed(tmp_path: Path) -> None:
    port, _ = converted(
        tmp_path,
        {
            "p/__init__.py": "",
            "p/base.py": "from torch import nn, Tensor\nimport torch.nn.functional as F\n",
            "p/net.py": "from .base import nn, F\n\n\nclass Net(nn.Module):\n"
            "    def forward(self, x):\n        return F.relu(x)\n",
            "p/more.py": "from .net import Net\n\n\nclass More(Net):\n"
            "    def forward(self, x):\n        return super().forward(x)\n",
        },
    )
    said = run_port(
        port,
        "import mindspore as ms, p.more\nprint(p.more.More()(ms.Tensor([-1.0, 2.0])).asnumpy())",
    )
    assert said.strip() == "[0. 2.]"


_LINES = st.sampled_from(
    [
        "x = torch.exp(x)",
        "x = torch.cat([x, torch.sin(x)], dim=1)  # note",
        "y = x.view(x.size(0), -1).max(dim=1)[0]",
        "layer = nn.Linear(3, 4,\n    bias=False,  # none\n)",
        "if torch.jit.is_scripting():\n    pass\nelse:\n    x.add_(1)",
        "t = f'{torch.float32} {x.size(0)}'",
        "z = torch.linalg.ldl_factor(\n    x\n)",
        "s = '''# no comment\n'''",
        "@torch.jit.ignore\ndef g(a: Tensor): return a.relu()",
        "class M(nn.Module):\n    def forward(self, x): return x",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_LINES, min_size=1, max_size=6), st.text(string.printable, max_size=12))
def test_a_port_parses_and_keeps_every_comment(lines: list[str], note: str) -> None:
    import tempfile

    note = "".join(letter for letter in note if letter not in "\r\n\x0b\x0c")
    code = "import torch\nfrom torch import nn, Tensor\n" + "\n".join(lines) + f"\n# {note}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.py"
        path.write_text(code)
        report = convert_path(path, Path(folder) / "out")
        port = (Path(folder) / "out" / "x.py").read_text()
    ast.parse(port)
    assert "internal-error" not in {finding.code for finding in report.findings}
    assert port.rstrip("\n").endswith(f"# {note}")
    assert port.count("# note") == code.count("# note")
    assert port.count("# none") == code.count("# none")


def test_the_report_says_why_runtime_functions_are_used(tmp_path: Path) -> None:
    """One row for each: its uses in all files, the first of them, and why it is there."""
    write_all(
        tmp_path / "original",
        {
            "net/__init__.py": "",
            "net/first.py": "import torch\n\n\ndef f(x):\n"
            "    return torch.cummax(x, 1).values + torch.cummax(x, 0).values\n",
            "net/second.py": "import torch\nfrom torch import nn\n\n\n"
            "def g(x):\n    return torch.cummax(x, 1).values\n\n\n"
            "layer = nn.Conv2d(3, 8, 3, padding=1, padding_mode='reflect')\n",
            "net/third.py": "from torch import nn\n\nlayer = nn.Linear(3, 8)\n",
        },
    )
    report = convert_path(tmp_path / "original", tmp_path / "port")
    first, second = report.runtime
    assert (first.name, first.uses, first.api) == ("cummax", 3, "torch.cummax")
    assert (second.name, second.uses, second.api) == ("Conv2d", 1, "torch.nn.Conv2d")
    assert "padding_mode" in second.why
    line = (tmp_path / "port" / second.file).read_text().split("\n")[second.line - 1]
    assert "compat.Conv2d(" in line
    assert report.to_data()["runtime"][0]["uses"] == 3
    assert "Runtime functions" in render_text(document(report), width=100, colour=False)


def test_a_layer_that_a_project_calls_by_torchs_names_says_so(tmp_path: Path) -> None:
    net = tmp_path / "net.py"
    net.write_text(
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.fc = nn.Linear(3, 4)\n\n"
        "    def forward(self, x):\n        return self.fc(input=x)\n"
    )
    (use,) = (use for use in convert_path(net, None).runtime if use.name == "Linear")
    assert use.why == "it is called by the names of torch's arguments"


def test_every_reason_names_mindspores_own_as_it_is_imported() -> None:
    """An API that MindSpore has is named by its full name, once."""
    whys = {
        entry.api: reason.why
        for entry in load_knowledge().entries
        for reason in reasons_of(entry, mark(entry.rewrite), Layers()).values()
    }
    assert len(whys) > 100
    assert [api for api, why in whys.items() if not why or "mindspore.mindspore" in why] == []


def test_a_port_that_needs_no_runtime_has_none(tmp_path: Path) -> None:
    """The README's example: names that were tried and not written are none that are used."""
    quickstart = Path(__file__).parents[2] / "examples/quickstart"
    report = convert_path(quickstart, tmp_path / "port")
    assert report.compositions == ()
    assert report.runtime == ()
    assert sorted(path.name for path in (tmp_path / "port").iterdir()) == ["net.py"]

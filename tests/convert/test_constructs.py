"""Each construct before and after: what is written, what is kept, what is told."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.convert.support import converted, port_of

from isograd.convert import Level

HEAD = "import torch\nfrom torch import nn, Tensor\nimport torch.nn.functional as F\n"

#: A line of torch, and the line of the port.
LINES = {
    "function": ("y = torch.exp(x)", "y = ops.exp(x)"),
    "nested calls": ("y = torch.exp(torch.sin(x) + 1)", "y = ops.exp(ops.sin(x) + 1)"),
    "axis by keyword": ("y = torch.cat([x, x], dim=1)", "y = ops.cat([x, x], 1)"),
    "size of an axis": ("b = x.size(0)", "b = x.shape[0]"),
    "size": ("s = x.size()", "s = x.shape"),
    "shape stays": ("b, c = x.shape", "b, c = x.shape"),
    "dtype": ("y = x.to(torch.float16)", "y = x.astype(ms.float16)"),
    "dtype alone": ("t = torch.int64", "t = ms.int64"),
    "device goes": ("y = torch.ones(2, device='cuda')", "y = ops.ones(2, dtype=ms.float32)"),
    "numbers": ("y = torch.tensor([1.0, -2])", "y = ms.Tensor([1.0, -2], ms.float32)"),
    "a number": ("y = torch.tensor(3, device=x.device)", "y = ms.Tensor(3, ms.int64)"),
    "numbers of a dtype": (
        "y = torch.tensor((1, 2), dtype=torch.double)",
        "y = ms.Tensor((1, 2), ms.float64)",
    ),
    "numbers that are cut": (
        "y = torch.tensor([1.5], dtype=torch.int64)",
        "y = compat.tensor([1.5], ms.int64)",
    ),
    "numbers of no known dtype": (
        "y = torch.tensor([1], dtype=x.dtype)",
        "y = compat.tensor([1], x.dtype)",
    ),
    "numbers that are not written": (
        "y = torch.tensor([len(x), 2])",
        "y = compat.tensor([len(x), 2], None)",
    ),
    "numbers of no shape": ("y = torch.tensor([])", "y = compat.tensor([], None)"),
    "in place, alone": ("y = x + 1; y.mul_(2)", "y = x + 1; y = y * 2"),
    "in place, a chain": ("y = x + 1; y.mul_(2).add_(1)", "y = x + 1; y = (y * 2) + 1"),
    "out": ("torch.add(x, x, out=x)", "compat.overwrite(x, x + x)"),
    "not torch's": ("y = sorted(x)  # torch.exp", "y = sorted(x)  # torch.exp"),
    "a text": ("t = 'torch.exp(x)'", "t = 'torch.exp(x)'"),
    "compilers": ("if torch.jit.is_scripting(): y = 1", "if False: y = 1"),
    "annotated": ("y: Tensor = torch.jit.annotate(Tensor, x)", "y: ms.Tensor = x"),
    "assertion": ("torch._assert(x.ndim == 2, 'two')", "assert x.ndim == 2, 'two'"),
    "asked": ("t = isinstance(x, torch.Tensor)", "t = isinstance(x, ms.Tensor)"),
    "typed tensors": ("make = torch.FloatTensor", "make = compat.FloatTensor"),
    "looked up": ("t = getattr(torch, 'float16')", "t = ms.float16"),
    "looked up, called": ("y = getattr(torch, 'abs')(x)", "y = ops.abs(x)"),
    "has": ("t = hasattr(F, 'relu')", "t = True"),
    "has not": ("t = hasattr(torch, 'no_such_thing')", "t = False"),
    "no gradient": ("with torch.no_grad(): y = x", "with compat.no_grad(): y = x"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_written_in_mindspores_words(name: str) -> None:
    before, after = LINES[name]
    port, findings = port_of(f"{HEAD}def f(x: Tensor):\n    {before}\n    return x\n")
    assert port.splitlines()[-2].strip() == after
    assert not [finding for finding in findings if finding.level is Level.FINISH]


def test_layers_arguments_keep_their_lines_and_comments() -> None:
    port, _ = port_of(
        HEAD
        + """
        layer = nn.Linear(
            3,  # colours
            4,
            # no bias here
            bias=False,
        )
        """.replace("        ", "")
    )
    assert "    3,  # colours\n    4,\n    # no bias here\n    has_bias=False,\n)" in port


def test_a_module_is_a_cell() -> None:
    port, findings = port_of(
        HEAD
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)

    @torch.jit.ignore
    def helper(self, x):
        return self.first(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x).relu()


class More(Net):
    def forward(self, x):
        return super().forward(x) + self.forward.__name__
"""
    )
    tree = ast.parse(port)
    net, more = (node for node in tree.body if isinstance(node, ast.ClassDef))
    assert ast.unparse(net.bases[0]) == "nn.Cell"
    assert [part.name for part in net.body if isinstance(part, ast.FunctionDef)] == [
        "__init__",
        "helper",
        "construct",
    ]
    assert "super().construct(x) + self.construct.__name__" in ast.unparse(more)
    assert "jit" not in port
    assert not findings


@pytest.mark.parametrize(
    "asked",
    [
        'hasattr(layer, "forward")',
        "getattr(layer, 'forward', None)(x)",
        'inspect.getattr_static(type(layer), "forward")',
        '"forward" in type(layer).__dict__',
        '"forward" not in dir(layer)',
        'vars(type(layer))["forward"]',
        'layer.method.__name__ == "forward"',
        'operator.methodcaller("forward", x)(layer)',
    ],
)
def test_forward_is_asked_for_by_its_name_in_the_port(asked: str) -> None:
    port, findings = port_of(HEAD + f"def f(layer: nn.Module, x):\n    return {asked}\n")
    assert asked.replace("forward", "construct") in port
    assert not findings


@pytest.mark.parametrize(
    "text",
    ['direction == "forward"', '{"forward": 1}["forward"]', 'getattr(x, "forward_hooks")'],
)
def test_forward_is_a_word_like_others_elsewhere(text: str) -> None:
    port, _ = port_of(HEAD + f"def f(direction, x):\n    return {text}\n")
    assert text in port


def test_a_class_that_is_no_module_keeps_its_forward() -> None:
    port, _ = port_of(
        HEAD + "class Rule:\n    def forward(self, x):\n        return x\n\n"
        '    def __call__(self, x):\n        return getattr(self, "forward")(x)\n'
    )
    assert 'getattr(self, "forward")(x)' in port


def test_a_network_with_dropout_starts_in_training_where_it_is_built() -> None:
    port, _ = port_of(
        HEAD + "class Net(nn.Module):\n    def forward(self, x):\n"
        "        return F.dropout(x, 0.5, self.training)\nnet = Net()\n"
    )
    assert "class Net(nn.Cell):" in port
    assert "net = Net().set_train()" in port


def test_classes_that_are_passed_around_take_torchs_arguments() -> None:
    port, _ = port_of(
        HEAD
        + """
def block(norm=nn.BatchNorm2d):
    return nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), norm(4, eps=1e-3), nn.BatchNorm2d(4))
"""
    )
    assert "norm=batch_norm2d_cell" in port
    assert "norm(4, eps=1e-3), nn.BatchNorm2d(4))" in port
    assert "def batch_norm2d_cell(" in port
    assert "compat" not in port


def test_open_arguments_go_to_a_function_that_takes_torchs() -> None:
    port, findings = port_of(HEAD + "def f(**where):\n    return nn.Linear(3, 4, **where)\n")
    assert "return dense_cell(3, 4, **where)" in port
    assert not findings


def test_a_parameter_of_a_function_is_changed_for_its_caller_too() -> None:
    port, _ = port_of(
        HEAD + "def start(tensor):\n    with torch.no_grad():\n        tensor.zero_()\n"
    )
    assert "compat.overwrite(tensor, ops.zeros_like(tensor))" in port


def test_a_value_that_is_read_later_is_bound_within_the_expression() -> None:
    port, _ = port_of(
        HEAD + "def f(x: Tensor):\n    y = x + 1\n    z = y.add_(1)\n    return y + z\n"
    )
    assert "z = (y := y + 1)" in port


def test_the_input_of_forward_is_bound_anew() -> None:
    """MindSpore refuses to write into the inputs of a function that it differentiates."""
    port, findings = port_of(
        HEAD + "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n        x += 1.5\n        x.mul_(2)\n        return x\n"
    )
    assert {(f.code, f.level) for f in findings} == {("in-place-input", Level.LOOK)}
    assert "        x += 1.5\n        x = x * 2\n" in port


def test_another_name_of_a_tensor_that_changes_in_place_sees_it() -> None:
    port, findings = port_of(
        HEAD + "def f(x: Tensor):\n    x = x * 2\n    y = x\n    x += 1\n    return x + y\n"
        "def g(x: Tensor):\n    y = x\n    x = x + 1\n    x += 1\n    return x + y\n"
    )
    assert not findings
    assert "y = x\n    x[...] = x + 1\n" in port
    assert "x = x + 1\n    x += 1\n" in port


@pytest.mark.parametrize(
    ("line", "api"),
    [
        ("y = torch.quantized_batch_norm(x)", "torch.quantized_batch_norm"),
        ("y = torch.fx.Tracer()", "torch.fx.Tracer"),
        ("y = torch.add(x, x, out=getattr(x, 'grad'))", "torch.add"),
        ("y = torch.exp(x, bogus=1)", "torch.exp"),
    ],
)
def test_what_has_no_counterpart_is_told_at_its_line(line: str, api: str) -> None:
    port, findings = port_of(f"{HEAD}\ndef f(x: Tensor):\n    {line}\n")
    (finding,) = [finding for finding in findings if finding.level is Level.FINISH]
    assert (finding.line, finding.api, finding.code) == (6, api, "not-converted")
    written = port.splitlines()[-1]
    assert "# isograd: " in written
    assert f'compat.unconverted("{api}")' in written
    ast.parse(port)


def test_a_comment_about_several_lines_stands_above_them() -> None:
    port, _ = port_of(
        HEAD + "def f(x):\n    return torch.quantized_batch_norm(\n        x,\n    )\n"
    )
    lines = port.splitlines()
    at = next(i for i, line in enumerate(lines) if "# isograd" in line)
    assert lines[at].startswith("    # isograd: ")
    assert "return" in lines[at + 1]


def test_an_import_that_code_can_do_without_fails_as_it_would_without_torch() -> None:
    port, findings = port_of(
        "try:\n    from torch.nn.attention.flex_attention import flex_attention\n    HAS = True\n"
        "except ImportError:\n    HAS = False\n"
    )
    assert 'raise ImportError("torch.nn.attention.flex_attention needs torch")' in port
    assert not findings


def test_a_part_of_a_parameters_data_is_written_to_the_parameter() -> None:
    port, findings = port_of(
        HEAD + "def f(net: nn.Module):\n    for name, bias in net.named_parameters():\n"
        "        bias.data[2:4].fill_(1.0)\n        bias.data[:1] = 3\n"
    )
    new = "ops.full_like(ops.stop_gradient(bias)[2:4], 1.0)"
    assert f"compat.elements(bias)[2:4] = {new}" in port
    assert "compat.elements(bias)[:1] = 3" in port
    assert not findings


def test_what_is_set_in_torch_is_told_and_parses() -> None:
    port, findings = port_of(
        "import torch\n\ndef f():\n    torch.utils.data._utils.worker._worker_info = None\n"
        "    torch.nn.functional.relu = abs\n    return torch.ones(1)\n"
    )
    assert [finding.line for finding in findings] == [4, 5]
    assert 'compat.unconverted("torch.nn.functional").relu = abs' in port
    assert "ops.ones(1, " in port, "the rest of the file is converted"


def test_libraries_that_need_torch_are_told_at_their_import() -> None:
    port, findings = port_of("import torch\nfrom timm.layers import DropPath\n\nd = DropPath\n")
    (finding,) = findings
    assert (finding.code, finding.line, finding.api) == ("third-party", 2, "timm.layers.DropPath")
    assert 'DropPath = compat.unconverted("timm.layers.DropPath")' in port


def test_all_names_of_a_library_that_needs_torch() -> None:
    port, findings = port_of("import torch\nfrom fastai.learner import *\n\nx = torch.relu(y)\n")
    assert [(finding.line, finding.api) for finding in findings] == [(2, "fastai.learner.*")]
    assert "x = ops.relu(y)" in port


def test_a_name_of_torchs_that_the_file_defines_anew() -> None:
    port, findings = port_of(
        "from torch.utils.data import Dataset\n\n\nclass Dataset(Dataset):\n"
        "    def __init__(self, folder, size):\n        self.folder = folder\n\n\n"
        'data = Dataset("here", 8)\n\n\ndef make():\n    return Dataset("there", 8)\n'
    )
    assert 'data = Dataset("here", 8)' in port
    assert 'return Dataset("there", 8)' in port
    assert not findings


def test_values_that_nobody_calls_are_of_a_result() -> None:
    port, findings = port_of(
        "import torch\n\ndef f(table, x):\n    return table.any().values, torch.sort(x).values\n"
    )
    assert (port.count(".values"), port.count(")[0]")) == (1, 1)
    assert not findings


def test_an_installed_library_that_says_that_it_needs_torch_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, needed in (("readouts", "torch>=2"), ("plain", 'torch; extra == "nets"')):
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {needed}\n"
        (tmp_path / f"{name}-1.0.dist-info" / "METADATA").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    _, findings = port_of("import torch\nfrom readouts import Readout\nfrom plain import plain\n")
    assert [finding.api for finding in findings] == ["readouts.Readout"]


@pytest.mark.parametrize(
    ("library", "needs_torch"),
    [
        ("einx", True),
        ("rotary_embedding_torch", True),
        ("vector_quantize_pytorch", True),
        ("torchtyping", True),
        ("pytorch3d", True),
        ("numpy", False),
        ("scipy.special", False),
    ],
)
def test_libraries_that_need_torch_are_told(library: str, needs_torch: bool) -> None:
    _, findings = port_of(f"import torch\nimport {library}\n\nx = torch.ones(3)\n")
    assert [finding.api for finding in findings] == [library] * needs_torch


def test_a_type_that_mindspore_lacks_is_named_and_its_values_are_no_tensors() -> None:
    port, findings = port_of("""
    import torch
    from torch.distributed.device_mesh import DeviceMesh


    class Parallel:
        mesh: DeviceMesh | None = None
        first: torch.distributed.device_mesh.DeviceMesh = None

        def setup(self, mesh: DeviceMesh, x: torch.Tensor):
            return mesh.size(), mesh["data"].size(), x.size()
    """)
    assert not findings
    assert "    mesh: object | None = None\n" in port
    assert '    first: "torch.distributed.device_mesh.DeviceMesh" = None\n' in port
    assert 'return mesh.size(), mesh["data"].size(), x.shape\n' in port


def test_quotes_in_a_format_are_those_that_do_not_end_it() -> None:
    port, findings = port_of("""
    import torch


    def f(x: torch.Tensor):
        a = f"the model's device is {x.device.type}"
        b = "the" f' "device" is {x.device.type}'
        c = f\'\'\'"it" is 'on' {x.device.type}\'\'\'
        return a, b, c
    """)
    assert not findings
    asked = 'x.device.partition(":")[0].lower()'
    assert f"{{{asked}}}" in port.splitlines()[-2]
    assert f"{{{asked}}}" in port.splitlines()[-3]
    assert "{" + asked.replace('"', "'") + "}" in port.splitlines()[-4]


def test_a_shape_that_is_bound_to_a_part_of_itself_counts_its_elements() -> None:
    port, _ = port_of("""
    import torch


    def f(x: torch.Tensor):
        shape = x.shape
        shape = shape[1:]
        return shape.numel()
    """)
    assert "return compat.element_count(shape)\n" in port


@pytest.mark.parametrize(
    "body",
    [
        "for s in x:\n        s = s[1:]\n    return s.numel()",
        "s, t = x.chunk(2)\n    s = s[1:]\n    return s.numel()",
        "s = x[0]\n    s = s[1:]\n    return s.numel()",
    ],
)
def test_what_is_no_shape_counts_itself(body: str) -> None:
    port, _ = port_of(f"import torch\n\n\ndef f(x: torch.Tensor):\n    {body}\n")
    assert "element_count" not in port


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("self.a = nn.Buffer((x * 2))", 'self.register_buffer("a", (x * 2))'),
        ("self.a = nn.Buffer(  # why\n    x)", 'self.register_buffer("a",   # why\n'),
        ("self.a = (nn.Buffer(x))", "unconverted"),
        ("(self.a) = nn.Buffer(x)", "unconverted"),
        ("self.a = self.b = nn.Buffer(x)", "unconverted"),
        ("y = x.type_as(x > 0)", "compat.typed(x, (x > 0).dtype)"),
        ("y = x.type_as(-torch.arange(3))", "(-ops.arange(3)).dtype)"),
    ],
)
def test_brackets_stay_around_what_they_hold(line: str, written: str) -> None:
    port, findings = port_of(
        f"import torch\nfrom torch import nn\n\n\ndef f(self, x: torch.Tensor):\n    {line}\n"
    )
    assert written in port
    assert not any(finding.code == "internal-error" for finding in findings)


def test_many_names_of_whole_numbers_are_asked_once() -> None:
    lines = "".join(f"    x{n + 1} = x{n} + x{n}\n" for n in range(40))
    port, _ = port_of(
        f"import torch\n\n\ndef f():\n    x0 = torch.arange(3)\n{lines}    return torch.exp(x40)\n"
    )
    assert "ops.exp(compat.floating(x40))" in port


def test_numpy_gives_way_also_where_no_import_stands_at_the_top() -> None:
    port, _ = port_of("""
    def f(w):
        from numpy import linalg
        import torch

        return linalg.norm([3.0, 4.0]) * torch.relu(w)
    """)
    assert port.index("compat.numpy_gives_way()") < port.index("def f")


def test_whether_torch_is_there_is_asked_of_mindspore() -> None:
    port, findings = port_of("""
    import importlib.util


    def is_there(name, with_version=False):
        return importlib.util.find_spec(name) is not None


    has = importlib.util.find_spec("torch") and is_there("torch") and not is_there("tensorflow")
    print("torch")
    """)
    assert not findings
    assert 'find_spec("mindspore") and is_there("mindspore") and not is_there("tens' in port
    assert 'print("torch")' in port


def test_imports_come_before_what_reads_them_in_a_condition() -> None:
    port, findings = port_of("""
    import json

    if json:
        import warnings

        import torch

        torch_dtypes = {"float": torch.float32}
        warnings.filterwarnings("ignore", category=torch.jit.TracerWarning)

    from math import pi
    """)
    assert not findings
    assert port.index("import mindspore as ms") < port.index("if json:")
    assert "category=compat.TracerWarning" in port


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('nn = importlib.import_module("torch.nn")', {"imported-by-name": Level.FINISH}),
        ('torch = __import__("torch")', {"imported-by-name": Level.FINISH}),
        ('x, _ = optional_import("einops", name="rearrange")', {"imported-by-name": Level.FINISH}),
        ('timm = import_module(name="timm.models")', {"imported-by-name": Level.FINISH}),
        ('has = importlib.util.find_spec("torch.nn") is not None', {"look": Level.LOOK}),
        ('np = importlib.import_module("numpy")', {}),
        ('print("torch")', {}),
        ('say("import", "torch")', {}),
    ],
)
def test_an_import_by_a_text_is_told(line: str, told: dict[str, Level]) -> None:
    port, findings = port_of(f"import importlib\n\n{line}\n")
    assert {finding.code: finding.level for finding in findings} == told
    assert line in port


def test_a_module_of_the_project_is_no_library(tmp_path: Path) -> None:
    files = {"net.py": "import torch_utils\n\nx = torch_utils.one()\n"}
    files["torch_utils.py"] = "import torch\n\ndef one():\n    return torch.ones(1)\n"
    assert not converted(tmp_path, files)[1].findings


def test_names_that_the_file_uses_otherwise_are_not_taken() -> None:
    port, _ = port_of(
        "import torch\n\ndef f(ops, ms):\n    return torch.exp(ops).to(torch.int64)\n"
    )
    assert "import mindspore as mindspore_\n" in port or "import mindspore" in port
    assert "def f(ops, ms):" in port
    body = port.splitlines()[-1]
    assert "ops.exp(ops)" not in body.replace("mindspore_ops.exp(ops)", "").replace(
        "mindspore.ops.exp(ops)", ""
    )


def test_variables_that_hide_an_import_are_left_alone() -> None:
    code = "import torch\nF = torch.nn.functional\n\ndef f(nn):\n    return nn.Conv2d(1)\n"
    port, _ = port_of("from torch import nn\n" + code)
    assert "return nn.Conv2d(1)" in port


def test_mint_is_written_where_there_is_one() -> None:
    port, _ = port_of(HEAD + "def f(x):\n    return torch.add(x, x, alpha=2)\n", target="mint")
    assert "mint.add(x, x, alpha=2)" in port


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("x.to(*a, **k)", "compat.to(x, *a, **k)"),
        ("x.clamp(*a)", "ops.clamp(x, *a)"),
        ("x.sum(**k)", "compat.total(x, **k)"),
        ("x.squeeze(*a)", "compat.squeeze(x, *a)"),
        ("torch.is_autocast_enabled(k)", "False"),
        ("torch.jit.is_scripting or k", "compat.never or k"),
        ("getattr(torch.compiler, 'is_compiling', None)", "compat.never"),
        ("isinstance(k, (str, torch.SymInt))", "isinstance(k, (str, compat.SymInt))"),
        ("isinstance(k, torch.torch.Tensor)", "isinstance(k, ms.Tensor)"),
        ("torch.randperm(k, dtype=torch.int32)", "ops.randperm(k, dtype=ms.int32)"),
        ("[torch.randperm][0](k)", "[ops.randperm][0](k)"),
    ],
)
def test_what_packages_write(asked: str, expected: str) -> None:
    port, findings = port_of(HEAD + f"def f(x: Tensor, a, k):\n    return {asked}\n")
    assert f"return {expected}\n" in port
    assert not findings


def test_arguments_that_are_not_known_in_mint_stay_compositions() -> None:
    port, findings = port_of(
        HEAD + "def f(net, x: Tensor, a):\n"
        "    return torch.optim.SGD(net.parameters(), lr=0.1), x.clamp(*a)\n",
        target="mint",
    )
    assert "compat.SGD(compat.parameters(net), lr=0.1)" in port
    assert "mint.optim" not in port
    assert not findings

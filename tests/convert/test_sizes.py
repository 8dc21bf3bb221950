"""Sizes of layers that torch takes in lists, MindSpore as numbers and tuples."""

from __future__ import annotations

from pathlib import Path

from tests.convert.support import converted, run_both

#: What is called with x (2, 3, 8, 8) and r (2, 3, 8), by name.
CALLS = {
    "convolution": "nn.Conv2d(3, 4, [3, 3], stride=[2, 2], padding=[1, 1])(x)",
    "a list by name": "nn.Conv2d(3, 4, 3, stride=SIZE, padding=SIZE)(x)",
    "one axis": "nn.Conv1d(3, 4, [3], stride=[2])(r)",
    "three axes": "nn.Conv3d(3, 4, [1, 3, 3], padding=[0, 1, 1])(x[:, :, None])",
    "transposed": "nn.ConvTranspose2d(3, 4, SIZE, stride=[2, 2])(x)",
    "greatest": "nn.MaxPool2d(SIZE)(x)",
    "greatest, moved by other steps": "nn.MaxPool2d(kernel_size=[2, 2], stride=[1, 1])(x)",
    "mean": "nn.AvgPool2d(SIZE)(x)",
    "mean of one axis": "nn.AvgPool1d([2])(r)",
    "to a size": "nn.AdaptiveAvgPool2d([2, 2])(x)",
    "norm": "nn.LPPool2d(2, [2, 2])(x)",
    "zeros": "nn.ZeroPad2d([1, 2, 1, 1])(x)",
    "reflected": "nn.ReflectionPad2d([1, 1, 2, 1])(x)",
    "function": "torch.sub(F.max_pool2d(x, [2, 2]), F.max_pool2d(x, SIZE))",
    "function with steps": "F.avg_pool2d(x, [2, 2], stride=[2, 1])",
    "function to a size": "F.adaptive_avg_pool2d(x, [2, 2])",
}
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nSIZE = [2, 2]\n\n\n"


def test_sizes_in_lists(tmp_path: Path) -> None:
    code = HEAD + "def shapes(x: torch.Tensor, r: torch.Tensor):\n    return {\n"
    code += "".join(f"        {name!r}: {call}.shape,\n" for name, call in CALLS.items())
    port, report = converted(tmp_path, {"sizes.py": code + "    }\n"})
    assert [one for file in report.files for one in file.findings] == []
    run = """
        import json, sizes
        ones = [TENSOR([[[[1.0] * 8] * 8] * 3] * 2), TENSOR([[[1.0] * 8] * 3] * 2)]
        print(json.dumps({name: list(shape) for name, shape in sizes.shapes(*ones).items()}))
    """
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_torch.keys() == CALLS.keys()
    assert of_port == of_torch


NUMPY = """
import numpy as np
from torch import nn

SHAPE = (4, 3)
COUNT = np.prod(SHAPE)


class Net(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.width = np.array(shape).prod()
        size = np.prod(shape) * 2
        self.a = nn.Linear(np.prod(shape), size)
        self.b = nn.Linear(in_features=size, out_features=self.width // 2)
        self.c = nn.Sequential(nn.Conv2d(np.max(shape), COUNT, 3), nn.BatchNorm2d(COUNT))
        self.d = nn.Dropout(np.max([0.5, 0.25]))
        sums = np.cumsum([4, 2])
        self.e = nn.Linear(3 + sums[0], sums[-1])


def sizes():
    net = Net(SHAPE)
    of_c = [net.c[0].out_channels]
    of_e = [net.e.in_features, net.e.out_features]
    return [[net.a.in_features, net.a.out_features, net.b.out_features], *of_c, of_e]
"""


def test_sizes_of_numpy(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"sizes.py": NUMPY})
    assert [one for file in report.files for one in file.findings] == []
    assert "nn.Dropout(p=np.max([0.5, 0.25]))" in (port / "sizes.py").read_text()
    of_torch, of_port = run_both(
        tmp_path, port, "import json, sizes; print(json.dumps(sizes.sizes(), default=int))"
    )
    assert of_port == of_torch == [[12, 24, 6], 12, [7, 6]]


EXPANDED = """
import torch


def expanded(x, sizes):
    one_by_one = x.broadcast_to(3, 2), x.broadcast_to(*sizes), x.broadcast_to(-1, 2)
    at_once = x.broadcast_to((3, 2)), x.broadcast_to(sizes), x.broadcast_to(size=(3, 2))
    return [[*part.shape] for part in (*one_by_one, *at_once)]
"""


def test_sizes_one_by_one_of_broadcast_to(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"sizes.py": EXPANDED})
    assert [one for file in report.files for one in file.findings] == []
    code = "import json, sizes; print(json.dumps(sizes.expanded(TENSOR([[1.0, 2.0]]), (3, 2))))"
    of_torch, of_port = run_both(tmp_path, port, code)
    assert of_port == of_torch


CUT = """
import torch
from torch import nn

EDGE = -1
PADS = [
    nn.ZeroPad2d((0, 0, 1, -1)),
    nn.ConstantPad1d((-1, 1), 0.5),
    nn.ConstantPad2d((EDGE, 1, 0, 0), 1.0),
    nn.ConstantPad2d((1, 2, 0, 0), 2.0),
]


def rounds():
    x = torch.arange(12.0).reshape(1, 3, 4)
    return [[pad(x + number).tolist() for pad in PADS] for number in range(3)]
"""


def test_edges_that_are_cut(tmp_path: Path) -> None:
    """MindSpore's own pads are wrong from the second call on."""
    port, _ = converted(tmp_path, {"cut.py": CUT})
    expected, found = run_both(tmp_path, port, "import json, cut; print(json.dumps(cut.rounds()))")
    assert found == expected
    assert "nn.ConstantPad2d((1, 2, 0, 0), 2.0)" in (port / "cut.py").read_text()


SHAPES = """
import torch


class Space:
    def __init__(self):
        self.shape = (2,)


def made(space, like, x: torch.Tensor):
    numbers = [torch.Tensor(space.shape), torch.FloatTensor(space.shape)]
    sized = [torch.Tensor(like.shape), torch.Tensor(x.shape), x.new(x.shape), x.new(like.size())]
    return [one.tolist() for one in numbers], [list(one.shape) for one in sized]
"""


def test_a_shape_that_is_no_tensors_is_numbers(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"shapes.py": SHAPES})
    code = """
        import json, shapes
        like, x = TENSOR([[1.0, 2.0]]), TENSOR([[1.0], [2.0], [3.0]])
        print(json.dumps(shapes.made(shapes.Space(), like, x)))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected == [[[2.0], [2.0]], [[1, 2], [3, 1], [3, 1], [1, 2]]]


NO_SIZES = """
import torch


def drawn(x: torch.Tensor, shape: torch.Size = torch.Size()):
    return list(x.reshape(shape + x.shape).shape), list(torch.zeros(torch.Size()).shape)
"""


def test_a_size_of_nothing_is_an_empty_shape(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"sized.py": NO_SIZES})
    assert not report.needs_action
    run = "import json, sized; print(json.dumps(sized.drawn(TENSOR([1.0, 2.0]))))"
    expected, found = run_both(tmp_path, port, run)
    assert found == expected == [[2], []]


def test_shapes_of_a_list_count_their_elements(tmp_path: Path) -> None:
    code = """
    import torch

    def counts(shapes):
        return [shape.numel() for shape in shapes]

    def found():
        made = [torch.ones(2, 3), torch.ones(4)]
        shapes = [one.shape for one in made]
        total = 0
        for shape in shapes:
            total += shape.numel()
        return [total, shapes[0].numel(), counts(shapes), counts(made)]
    """
    port, _ = converted(tmp_path, {"net.py": code})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.found()))")
    assert found == expected == [10, 6, [6, 4], [6, 4]]


OF_TENSORS = """
import torch


def parts(x, shapes):
    sizes = [h * w for h, w in shapes]
    found = [*x.split([h * w for h, w in shapes], dim=1), *torch.split(x, sizes, 1)]
    found += torch.split_with_sizes(x, (shapes[0].prod(), shapes[1].prod()), 1)
    found += x.split(split_size=torch.sum(shapes[0]), dim=1)
    return found + [*x.split([w for w in (6, 2)], 1)]
"""


def test_sizes_of_parts_that_are_tensors(tmp_path: Path) -> None:
    port, report = converted(tmp_path, {"sizes.py": OF_TENSORS})
    assert not report.findings
    assert ", [w for w in (6, 2)], 1)" in (port / "sizes.py").read_text()
    run = """
        import json, sizes
        found = sizes.parts(TENSOR([[[1.0] * 4] * 8]), TENSOR([[2, 3], [1, 2]]))
        print(json.dumps([list(part.shape) for part in found]))
    """
    of_torch, of_port = run_both(tmp_path, port, run)
    assert of_port == of_torch

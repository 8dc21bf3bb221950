"""Torch-shaped layers beside torch's: names, first values, copies, names of what is added later."""

import json
from pathlib import Path

import pytest
from tests.warm_python import run_python

pytest.importorskip("torch")
pytest.importorskip("mindspore")

LAYERS = """
Linear(300, 200)
Linear(16, 4, bias=False)
Bilinear(30, 20, 10)
Conv1d(16, 32, 5)
Conv2d(16, 64, 3, groups=2)
Conv3d(4, 8, 3)
ConvTranspose2d(16, 32, 4)
Embedding(200, 50, padding_idx=3)
EmbeddingBag(200, 50)
BatchNorm2d(8)
BatchNorm1d(8, affine=False)
InstanceNorm2d(8, affine=True, track_running_stats=True)
LayerNorm((3, 4))
LayerNorm(8, bias=False)
GroupNorm(2, 8)
RMSNorm(8)
PReLU(4)
MultiheadAttention(32, 4)
MultiheadAttention(32, 4, kdim=16, vdim=8, add_bias_kv=True)
LSTM(16, 32, num_layers=2, bidirectional=True)
LSTM(16, 32, proj_size=8)
GRU(16, 32, bias=False)
RNN(16, 32)
AdaptiveLogSoftmaxWithLoss(32, 100, [10, 40])
LinearCrossEntropyLoss(16, 20, bias=True)
LSTMCell(16, 32)
GRUCell(16, 32)
RNNCell(16, 32)
TransformerEncoderLayer(32, 4, 64)
TransformerDecoderLayer(32, 4, 64)
Transformer(16, 2, 1, 1, 32)
""".strip().splitlines()

BOTH = """
import json, sys
import torch
import numpy as np
import mindspore as ms
from isograd import runtime as composites

torch.manual_seed(0)
ms.set_seed(0)
layers = json.load(sys.stdin)

def facts(items):
    found = {}
    for name, array in items:
        array = np.asarray(array, np.float64)
        found[name] = [list(array.shape), float(array.mean()), float(array.std()),
                       float(np.abs(array).max())]
    return found

rows = []
for text in layers:
    theirs = eval("torch.nn." + text)
    ours = eval("composites." + text)
    rows.append([
        facts((n, t.detach().numpy()) for n, t in theirs.state_dict().items()
              if "num_batches" not in n),
        facts((n, t.asnumpy()) for n, t in (
            ours.state_dict().items() if isinstance(ours, composites.Module)
            else composites.named_parameters(ours))),
        [n for n, _ in theirs.named_parameters()],
        [n for n, _ in composites.named_parameters(ours)],
        [p.name for p in ours.get_parameters()],
        [theirs.training, ours.training or not isinstance(ours, composites.Module)],
    ])
print(json.dumps(rows))
"""


def _run(code: str, given: object = None) -> object:
    frameworks = ["torch", "mindspore"]
    done = run_python(code, cwd=Path.cwd(), imported=frameworks, given=json.dumps(given))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_layers_start_as_torchs() -> None:
    rows = _run(BOTH, LAYERS)
    assert isinstance(rows, list)
    for text, (theirs, ours, names, own_names, inner, training) in zip(LAYERS, rows, strict=True):
        assert list(ours) == list(theirs), text
        assert own_names == names, text
        assert len(set(inner)) == len(inner), text
        assert training == [True, True], text
        for name, (shape, mean, deviation, greatest) in theirs.items():
            own_shape, own_mean, own_deviation, own_greatest = ours[name]
            assert own_shape == shape, (text, name)
            count = 1
            for size in shape:
                count *= size
            # Five times what two samples of this size differ by; there are hundreds of them.
            spread = 7 * max(deviation, 1e-9) / count**0.5
            assert abs(own_mean - mean) <= spread, (text, name)
            assert abs(own_deviation - deviation) <= spread, (text, name)
            if count > 500:
                assert own_greatest == pytest.approx(greatest, rel=0.35), (text, name)


LATER = """
import copy, json
import torch  # before MindSpore
import mindspore as ms
from isograd import runtime as composites

class Net(composites.Module):
    def __init__(self):
        super().__init__()
        self.first = composites.ModuleList()
        self.second = composites.ModuleList()
        for _ in range(2):
            self.first.append(composites.Linear(2, 2))
            self.second.append(composites.Sequential(composites.Linear(2, 2)))
        self.second.insert(0, composites.Linear(2, 2))
        self.scale = ms.Parameter(ms.Tensor([1.0]))
        self.plain = [self.scale, self.scale]

outer = composites.Sequential(Net())
outer[0].more = composites.Linear(2, 2)
other = copy.deepcopy(outer)
other[0].scale.set_data(ms.Tensor([5.0]))
print(json.dumps([
    [p.name for p in outer.get_parameters()],
    [n for n, _ in outer.named_parameters()],
    float(outer[0].scale.asnumpy()[0]),
    [n for n, _ in other.named_parameters()],
]))
"""


def test_what_is_added_later_is_named_by_its_path() -> None:
    found = _run(LATER)
    assert isinstance(found, list)
    names, paths, kept, copied = found
    assert sorted(names) == sorted(paths)
    assert "0.second.2.0.weight" in names
    assert "0.more.bias" in names
    assert kept == 1.0
    assert copied == paths


LEARNS = """
import json
import torch  # before MindSpore
import mindspore as ms
from mindspore import nn
from isograd import runtime as composites

def after(change):
    layer = composites.Linear(2, 1)
    optimizer = nn.SGD(list(layer.trainable_params()), 0.5)
    step = ms.value_and_grad(lambda x: layer(x).sum(), None, optimizer.parameters)
    x = ms.Tensor([[1.0, 1.0]])
    optimizer(step(x)[1])
    change(layer)
    optimizer(step(x)[1])
    return layer.weight.asnumpy().tolist()

value = ms.Tensor([[2.0, 2.0]])
print(json.dumps([
    after(lambda layer: composites.init_constant(layer.weight, 2.0)),
    after(lambda layer: layer.load_state_dict({"weight": value}, strict=False)),
    after(lambda layer: composites.load_state_dict(layer, {"weight": value}, False)),
]))
"""


def test_what_is_set_after_a_step_still_learns() -> None:
    """After MindSpore's own set_data and load_state_dict it would not."""
    assert _run(LEARNS) == [[[1.5, 1.5]]] * 3


LOADED = """
import json
import torch  # before MindSpore
import mindspore as ms
from mindspore import ops
from isograd import runtime as composites

rows = ops.sin(ops.arange(6).astype(ms.float32)).view(3, 2)
layer = composites.Embedding.from_pretrained(rows, freeze=False)
ops.assign(layer.weight, ops.ones((3, 2), dtype=ms.float32))
print(json.dumps([layer.weight.asnumpy().tolist(), layer.weight.requires_grad]))
"""


def test_a_table_that_was_a_view_can_be_loaded() -> None:
    assert _run(LOADED) == [[[1.0, 1.0]] * 3, True]


_REFUSED = """
import mindspore as ms, numpy as np
from isograd.runtime import eigvalsh, qr
matrix = ms.Tensor(np.eye(3, dtype=np.float32) + 1)
parameter = ms.Parameter(matrix)
found = qr(parameter)[0], eigvalsh(parameter)
print(*(np.isfinite(part.asnumpy()).all() for part in found))
try:
    ms.grad(lambda x: qr(x[:, :2], "complete")[0].sum())(matrix)
except NotImplementedError as error:
    print(error)
"""


def test_no_gradient_is_lost_in_what_numpy_computes() -> None:
    # In a process of its own: an error inside `grad` leaves MindSpore 2.10 recording.
    done = run_python(_REFUSED, cwd=Path.cwd(), imported=["torch", "mindspore"])
    finite, refused = done.stdout.strip().splitlines()[-2:]
    assert finite == "True True"
    assert refused.startswith("MindSpore has no gradient of torch.linalg.qr")

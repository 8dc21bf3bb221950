"""What isograd writes, loaded by the frameworks themselves, and what they write, converted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isograd.checkpoints.open import open_source
from isograd.cli import main
from isograd.errors import CheckpointError
from isograd.weights.convert import ConvertOptions, convert
from isograd.weights.plan import make_plan

from . import parametrized_networks
from .networks import build_mindspore, build_torch

torch = pytest.importorskip("torch")
mindspore = pytest.importorskip("mindspore")

NETWORKS = Path(__file__).with_name("networks.py")
PARAMETRIZED = Path(__file__).with_name("parametrized_networks.py")


def torch_state() -> dict[str, Any]:
    """The state of the torch network with all numbers different."""
    torch.manual_seed(0)
    state = build_torch().state_dict()
    return {
        name: torch.randn(value.shape) if value.is_floating_point() else value
        for name, value in state.items()
    }


def converted(source: Path, target: Path, names: str, **options: Any) -> Any:
    with open_source(source) as opened:
        return convert(opened, target, make_plan(opened, names), ConvertOptions(**options))


def test_every_layer_is_loaded_by_mindspore(tmp_path: Path) -> None:
    torch.save(torch_state(), tmp_path / "a.pth")
    report = converted(tmp_path / "a.pth", tmp_path / "a.ckpt", "mindspore", has_checksum=True)
    assert not report.needs_action
    found = mindspore.load_checkpoint(str(tmp_path / "a.ckpt"), crc_check=True)
    network = build_mindspore()
    assert mindspore.load_param_into_net(network, found, strict_load=True) == ([], [])
    np.testing.assert_array_equal(
        network.volume_bn.bn2d.moving_variance.asnumpy(),
        torch_state()["volume_bn.running_var"].numpy(),
    )


def test_into_a_network_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"state_dict": torch_state(), "epoch": 3}, tmp_path / "a.pth")
    source, port, back = (str(tmp_path / name) for name in ("a.pth", "a.ckpt", "b.pth"))
    there = ["weights", source, "-o", port, "--into", f"{NETWORKS}:build_mindspore"]
    assert main(there) == 0, capsys.readouterr()
    assert main(["weights", port, "-o", back, "--into", f"{NETWORKS}:build_torch"]) == 0
    state = torch.load(back, weights_only=True)
    left = build_torch().load_state_dict(state, strict=False)
    assert not left.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in left.missing_keys)
    assert all(torch.equal(value, torch_state()[name]) for name, value in state.items())


def test_a_network_that_would_lack_something_gets_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = torch_state()
    del state["head.weight"]
    state["ln.weight"] = torch.ones(9)
    torch.save(state, tmp_path / "a.pth")
    target = tmp_path / "a.ckpt"
    call = ["weights", str(tmp_path / "a.pth"), "-o", str(target)]
    call += ["--into", f"{NETWORKS}:build_mindspore"]
    assert main(call) == 1
    shown = capsys.readouterr().out
    assert "head.weight" in shown
    assert "ln.gamma" in shown
    assert "nothing was written" in shown
    assert not target.exists()
    assert main([*call, "--partial"]) == 1
    assert len(open_source(target)) > 40


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_computed_weights_are_folded(dtype: str, tmp_path: Path) -> None:
    network = parametrized_networks.build_torch().to(getattr(torch, dtype)).eval()
    state = network.state_dict()
    torch.save({f"module.{name}": value for name, value in state.items()}, tmp_path / "a.pth")
    target, plan = tmp_path / "a.ckpt", tmp_path / "map.json"
    call = ["weights", str(tmp_path / "a.pth"), "--into", f"{PARAMETRIZED}:build_mindspore"]
    assert main([*call, "-o", str(target), "--write-map", str(plan)]) == 0
    again = ["weights", str(tmp_path / "a.pth"), "-o", str(tmp_path / "b.ckpt")]
    assert main([*again, "--map", str(plan)]) == 0
    assert (tmp_path / "b.ckpt").read_bytes() == target.read_bytes()
    found = open_source(target)
    assert set(found.names()) == set(parametrized_networks.build_mindspore().parameters_dict())
    sigma = network.second.weight_u @ network.second.weight_orig @ network.second.weight_v
    expected = {
        "second.weight": network.second.weight_orig / sigma,
        "turn.weight_hh_l0": network.turn.weight_hh_l0,
    }
    for name in ("first", "line", "all", "up"):
        expected[f"{name}.weight"] = getattr(network, name).weight
        expected[f"{name}.bias"] = getattr(network, name).bias
    tolerance = {"float32": 1e-6, "bfloat16": 0.02}[dtype]
    for name, value in expected.items():
        wanted = value.detach().float().numpy()
        values = found.read(name).values.reshape(wanted.shape)
        np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance)


def test_parts_stay_where_the_network_has_them(tmp_path: Path) -> None:
    state = parametrized_networks.build_torch().state_dict()
    torch.save(state, tmp_path / "a.pth")
    call = ["weights", str(tmp_path / "a.pth"), "-o", str(tmp_path / "b.pth")]
    assert main([*call, "--into", f"{PARAMETRIZED}:build_torch"]) == 0
    back = torch.load(tmp_path / "b.pth", weights_only=True)
    assert back.keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in back.items())


@pytest.mark.parametrize("way", ["pruned", "orthogonal"])
def test_a_part_never_becomes_a_whole_weight(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = torch.nn.Module()
    network.first = torch.nn.Linear(4, 4)
    if way == "pruned":
        from torch.nn.utils import prune

        prune.l1_unstructured(network.first, "weight", 0.5)
    else:
        torch.nn.utils.parametrizations.orthogonal(network.first)
    torch.save(network.state_dict(), tmp_path / "a.pth")
    call = ["weights", str(tmp_path / "a.pth"), "-o", str(tmp_path / "a.ckpt")]
    assert main([*call, "--into", f"{PARAMETRIZED}:build_dense"]) == 2
    assert "is what torch computes a weight from" in capsys.readouterr().err
    assert not (tmp_path / "a.ckpt").exists()


@pytest.mark.parametrize("names", ["torch", "keep"])
def test_states_of_mindspore_optimizers_are_left_out(names: str, tmp_path: Path) -> None:
    network = mindspore.nn.SequentialCell(
        mindspore.nn.Dense(3, 2), mindspore.nn.BatchNorm1d(2), mindspore.nn.Dense(2, 2)
    )
    optimizer = mindspore.nn.Adam(network.trainable_params())
    step = mindspore.nn.TrainOneStepCell(
        mindspore.nn.WithLossCell(network, mindspore.nn.MSELoss()), optimizer
    )
    path = tmp_path / "a.ckpt"
    mindspore.save_checkpoint(step, str(path), append_dict={"epoch_num": 3, "note": "häß"})
    source = open_source(path)
    assert source.metadata["note"] == "häß"
    report = converted(path, tmp_path / "a.pth", names)
    assert not report.needs_action
    found = torch.load(tmp_path / "a.pth", weights_only=True)
    assert len(found) == 8
    dropped = {item.name: item.reason for item in report.plan.dropped}
    assert "belongs to optimizer" in dropped["moment1.0.weight"]
    assert "belongs to counters" in dropped["epoch_num"]


def test_parts_beside_a_torch_network(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {f"module._orig_mod.{name}": value for name, value in model.state_dict().items()}
    average = {name: value + 1 for name, value in model.state_dict().items()}
    content = {"model": state, "ema": average, "optimizer": optimizer.state_dict(), "epoch": 1}
    torch.save(content, tmp_path / "a.pth")
    report = converted(tmp_path / "a.pth", tmp_path / "a.ckpt", "mindspore")
    assert open_source(tmp_path / "a.ckpt").names() == ("0.weight", "0.bias", "1.gamma", "1.beta")
    reasons = {item.reason.split(",")[0] for item in report.plan.dropped}
    assert reasons == {"belongs to ema", "belongs to optimizer"}
    assert [note.split()[0] for note in report.plan.notes] == ["_orig_mod", "module"]
    with open_source(tmp_path / "a.pth") as source:
        convert(source, tmp_path / "ema.ckpt", make_plan(source, "mindspore", part="ema"))
    found = mindspore.load_checkpoint(str(tmp_path / "ema.ckpt"))
    np.testing.assert_array_equal(found["1.beta"].asnumpy(), average["1.bias"].numpy())


_TORCH_ONLY = ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64", "complex128")
_DTYPES = (
    "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
    "bool", "complex64", *_TORCH_ONLY,
)  # fmt: skip


def _sample(dtype: str) -> Any:
    values = torch.tensor([[0.0, 1.0, 2.5], [4.0, 96.0, 7.0]], dtype=torch.float64)
    return values.to(getattr(torch, dtype))


@pytest.mark.parametrize("suffix", [".pth", ".ckpt", ".safetensors", ".npz"])
def test_all_formats_keep_every_bit_of_every_dtype(suffix: str, tmp_path: Path) -> None:
    state = {dtype: _sample(dtype) for dtype in _DTYPES}
    state |= {"number": torch.tensor(3.5), "empty": torch.zeros(0, 3)}
    state["turned"] = _sample("int32").t()
    kept = dict(state)
    while kept:
        torch.save(kept, tmp_path / "a.pth")
        try:
            converted(tmp_path / "a.pth", tmp_path / f"b{suffix}", "keep")
            break
        except CheckpointError as error:  # the format has no place for one, and says for which
            refused = next(name for name in kept if f" {name} is" in f" {error}")
            assert refused.startswith(("complex", "float8"))
            del kept[refused]
    assert len(kept) >= 14
    converted(tmp_path / f"b{suffix}", tmp_path / "c.pth", "keep")
    found = torch.load(tmp_path / "c.pth", weights_only=True)
    assert found.keys() == kept.keys()
    for name, value in kept.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        assert torch.equal(_bytes(found[name]), _bytes(value))


def _bytes(tensor: Any) -> Any:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def test_mindspore_reads_every_dtype_that_is_written_for_it(tmp_path: Path) -> None:
    state = {d: _sample(d) for d in _DTYPES if not d.startswith(("float8", "complex"))}
    torch.save(state, tmp_path / "a.pth")
    converted(tmp_path / "a.pth", tmp_path / "a.ckpt", "keep")
    found = mindspore.load_checkpoint(str(tmp_path / "a.ckpt"))
    for name, value in state.items():
        expected = value.to(torch.float64).numpy()
        np.testing.assert_array_equal(
            found[name].astype(mindspore.float32).asnumpy(), expected.astype(np.float32)
        )


def test_a_safetensors_file_for_each_framework(tmp_path: Path) -> None:
    from safetensors import safe_open

    torch.save(torch_state(), tmp_path / "a.pth")
    for names, label in (("torch", "pt"), ("mindspore", "ms")):
        converted(tmp_path / "a.pth", tmp_path / "a.safetensors", names)
        with safe_open(tmp_path / "a.safetensors", "np") as file:
            assert file.metadata() == {"format": label}
    found = mindspore.load_checkpoint(str(tmp_path / "a.safetensors"), format="safetensors")
    assert "ln.gamma" in found


def test_settings_and_numbers_beside_the_network(tmp_path: Path) -> None:
    state = torch.nn.Linear(3, 2).state_dict()
    content = {
        "state_dict": {"model": state},
        "args": argparse.Namespace(lr=0.1, names=["a"], inner=argparse.Namespace(depth=3)),
        "best": np.float64(0.75),
        "epoch": np.int64(7),
        "history": np.ones(3),
    }
    torch.save(content, tmp_path / "a.pth")
    source = open_source(tmp_path / "a.pth")
    assert source.names() == ("weight", "bias")
    found = source.metadata
    assert (found["wrapper"], found["best"], found["epoch"]) == ("state_dict.model", "0.75", "7")
    assert (found["args.lr"], found["args.inner.depth"]) == ("0.1", "3")
    assert "array of numpy" in found["history"]

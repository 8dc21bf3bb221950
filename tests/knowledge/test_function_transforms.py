"""What the examples of torch.func, of random states and of checked gradients do not reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("mindspore")

import mindspore as ms
from mindspore import nn, ops
from mindspore.common import api

from isograd import runtime as composites


@pytest.fixture(autouse=True)
def _without_recording() -> Iterator[None]:
    yield
    api._pynative_executor.clear_res()  # what an error left behind
    api._pynative_executor.set_grad_flag(False)


def _tensor(*shape: int) -> ms.Tensor:
    return ms.Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def test_a_gradient_of_a_gradient_is_refused() -> None:
    inner = composites.grad_and_value(lambda x: (x**3).sum())
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        ms.grad(lambda x: inner(x)[0].sum())(_tensor(3))


def test_a_gradient_of_many_numbers_is_refused() -> None:
    with pytest.raises(RuntimeError, match="a number has to be returned"):
        composites.grad_and_value(lambda x: x * 2)(_tensor(3))


def test_second_derivatives_go_through_products_of_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ms, "jit", api.jit)  # verify switches it off in its process
    x, weight = _tensor(3), _tensor(3, 3)

    def cubes(x: ms.Tensor) -> ms.Tensor:
        return (ops.matmul(weight, x) ** 3).sum()

    found = composites.hessian(cubes)(x).asnumpy()
    w, v = weight.asnumpy(), x.asnumpy()
    wanted = w.T @ np.diag(6 * (w @ v)) @ w
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_second_derivatives_are_refused_where_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ms, "jit", lambda **_: lambda function: function)
    with pytest.raises(NotImplementedError, match=r"needs mindspore\.jit"):
        composites.hessian(lambda x: (x**3).sum())(_tensor(3))


def test_parameters_in_a_dict_have_gradients() -> None:
    net = composites.Linear(3, 1)
    x = _tensor(4, 3)

    def loss(parameters: dict[str, ms.Tensor]) -> ms.Tensor:
        return composites.functional_call(net, parameters, x).mean()

    slopes, _ = composites.grad_and_value(loss)(dict(net.named_parameters()))
    np.testing.assert_allclose(slopes["weight"].asnumpy(), x.asnumpy().mean(0)[None], rtol=1e-5)
    assert isinstance(net.weight, ms.Parameter)


def test_a_recurrent_layer_of_mindspore_computes_with_the_given_values() -> None:
    net, other = nn.LSTM(3, 4), nn.LSTM(3, 4)
    values = {name: ms.Tensor(p.asnumpy()) for name, p in composites.named_parameters(other)}
    x = _tensor(5, 2, 3)
    found, wanted = composites.functional_call(net, values, x)[0], other(x)[0]
    np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5)
    assert not np.allclose(found.asnumpy(), net(x)[0].asnumpy())


def test_tied_parameters_take_one_value() -> None:
    net = nn.SequentialCell(nn.Dense(3, 3, has_bias=False), nn.Dense(3, 3, has_bias=False))
    net[1].weight = net[0].weight
    given = {"0.weight": _tensor(3, 3), "1.weight": _tensor(3, 3)}
    with pytest.raises(ValueError, match="is tied"):
        composites.functional_call(net, given, _tensor(2, 3))
    x = _tensor(2, 3)
    found = composites.functional_call(net, {"0.weight": given["0.weight"]}, x).asnumpy()
    weight = given["0.weight"].asnumpy()
    np.testing.assert_allclose(found, x.asnumpy() @ weight.T @ weight.T, rtol=1e-4, atol=1e-5)


def test_strict_names_what_is_missing_and_what_is_not_known() -> None:
    given = {"weight": _tensor(3, 3), "scale": _tensor(3)}
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): \['bias'\].*\['scale'\]"):
        composites.functional_call(nn.Dense(3, 3), given, _tensor(2, 3), strict=True)


def test_a_nan_in_a_gradient_raises_in_a_block_alone() -> None:
    weight = ms.Parameter(ops.zeros((2,), ms.float32), name="weight")

    def backward() -> None:
        composites.record_gradients()
        composites.backward((ops.log(weight) * 0).sum())

    composites.track([weight])
    with (
        pytest.raises(RuntimeError, match="weight has nan values"),
        composites.detect_anomaly(),
    ):
        backward()
    backward()
    with composites.set_detect_anomaly(mode=True, check_nan=False):
        backward()


def test_a_wrong_gradient_is_found() -> None:
    point = ms.Parameter(ms.Tensor(np.array([0.5, 1.5]), ms.float64), name="point")
    assert composites.gradcheck(lambda x: x * x, (point,))
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        composites.gradcheck(lambda x: x * ops.stop_gradient(x), (point,))
    with pytest.raises(ValueError, match="at least one input"):
        composites.gradcheck(lambda x: x * x, (_tensor(2),))


def test_a_random_state_survives_a_checkpoint(tmp_path) -> None:
    ms.set_seed(5)
    path = tmp_path / "state.ckpt"
    composites.save({"random": composites.get_rng_state()}, path)
    first = ops.rand(4).asnumpy(), ops.randn(4).asnumpy()
    composites.set_rng_state(composites.load(path)["random"])
    second = ops.rand(4).asnumpy(), ops.randn(4).asnumpy()
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_target_beyond_the_classes_is_refused() -> None:
    layer = composites.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])
    with pytest.raises(RuntimeError, match="Target values should be in"):
        layer(_tensor(2, 4), ms.Tensor(np.array([3, 10])))
    with pytest.raises(ValueError, match="cutoffs"):
        composites.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 2])


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        composites.fractional_max_pool2d(_tensor(1, 1, 4, 4), 3, 3)
    with pytest.raises(ValueError, match="output_size"):
        composites.fractional_max_pool2d(_tensor(1, 1, 4, 4), 2)


def test_what_is_scattered_is_gathered_again() -> None:
    x = _tensor(5, 2)
    rows = composites.scatter_to_devices({"x": x, "name": "a", "pair": (x, 3)}, ["0", "1"])
    assert [row["x"].shape[0] for row in rows] == [3, 2]
    assert [row["name"] for row in rows] == ["a", "a"]
    found = composites.gather_from_devices([(row["x"], row["pair"][0].sum()) for row in rows])
    np.testing.assert_array_equal(found[0].asnumpy(), x.asnumpy())
    assert found[1].shape == (2,)
    results = composites.parallel_apply([nn.Identity(), nn.Identity()], [row["x"] for row in rows])
    np.testing.assert_array_equal(composites.gather_from_devices(results).asnumpy(), x.asnumpy())


def test_a_lazy_layer_that_is_read_early_keeps_its_parameters() -> None:
    net = composites.Sequential(composites.LazyConv2d(4, 3), composites.LazyBatchNorm2d())
    before = list(net.parameters())
    net(_tensor(2, 3, 5, 5))
    assert [a is b for a, b in zip(before, net.parameters(), strict=True)] == [True] * 4
    assert net[0].weight.shape == (4, 3, 3, 3)
    assert type(net[0]) is composites.Conv2d
    assert net[0].weight.asnumpy().std() > 0


@pytest.mark.parametrize(
    ("lazy", "eager"),
    [
        ("LazyLinear(4)", "Linear(1, 4)"),
        ("LazyConv2d(4, 3, groups=2)", "Conv2d(6, 4, 3, groups=2)"),
        ("LazyConvTranspose1d(4, 3)", "ConvTranspose1d(5, 4, 3)"),
        ("LazyBatchNorm1d(affine=False)", "BatchNorm1d(3, affine=False)"),
    ],
)
def test_a_lazy_layer_takes_its_size_from_a_checkpoint(lazy: str, eager: str) -> None:
    empty, full = (eval(f"composites.{text}") for text in (lazy, eager))
    for parameter in full._params.values():
        if parameter is not None:
            composites.write(parameter, _tensor(*parameter.shape))
    net = composites.Sequential(empty)
    net.load_state_dict(composites.Sequential(full).state_dict())
    assert type(empty) is type(full)
    for name, parameter in full._params.items():
        if parameter is not None:
            np.testing.assert_array_equal(empty._params[name].asnumpy(), parameter.asnumpy())

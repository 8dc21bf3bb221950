"""Weights that are computed from other parameters: weight norm, spectral norm, and any other.

A layer's class becomes one with a property in the place of the weight, which is computed at every
reading; parameters and buffers have torch's names.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import ops  # noqa: TID253

from isograd.runtime.basics import root, sum_of
from isograd.runtime.torch_module import Module


def _norm_except(values: Any, dim: int) -> Any:
    """The norm over all axes but one; over all for -1."""
    axes = tuple(axis for axis in range(values.ndim) if axis != dim)
    return root(sum_of(values * values, axes, keepdims=dim != -1))


def _unit(values: Any, eps: float) -> Any:
    return values / ops.maximum(ops.norm(values), ms.Tensor(eps, values.dtype))


def _as_matrix(values: Any, dim: int) -> Any:
    axes = (dim, *(axis for axis in range(values.ndim) if axis != dim))
    return ops.transpose(values, axes).reshape((values.shape[dim], -1))


def _over_norm(values: Any, matrix: Any, u: Any, v: Any) -> Any:
    """A weight over the singular value that belongs to u and v, which are constants."""
    u, v = ops.stop_gradient(u), ops.stop_gradient(v)
    return values / sum_of(u * ops.mv(matrix, v), (0,))


def _output_axis(module: Any) -> int:
    """The axis of a layer's weight along which its outputs lie."""
    return 1 if getattr(module, "transposed", False) else 0


def _taken(module: Any, name: str) -> Any:
    """A parameter's values; it is no parameter of the module from then on."""
    values = ms.Tensor(getattr(module, name).asnumpy())
    delattr(module, name)
    return values


def _derive(module: Any, members: dict[str, Any]) -> None:
    """Give one module a class of its own with more members."""
    kind = type(module)
    own = {**members, "_derived_from": kind, "_members": tuple(members)}
    module.__class__ = type(kind.__name__, (kind,), own)


def _underive(module: Any, name: str) -> None:
    """Take the class that was derived for a name away; those that were derived later stay."""
    later = []
    kind = type(module)
    while name not in vars(kind):
        later.append({key: vars(kind)[key] for key in kind._members})
        kind = kind._derived_from
    module.__class__ = kind._derived_from
    for members in reversed(later):
        _derive(module, members)


def _restore(module: Any, name: str, parts: tuple[str, ...]) -> Any:
    """Make the weight a parameter again."""
    values = ms.Tensor(getattr(module, name).asnumpy())
    _underive(module, name)
    for part in parts:
        delattr(module, part)
    setattr(module, name, ms.Parameter(values))
    return module


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Direction `weight_v` and length `weight_g` instead of a weight."""
    axis = -1 if dim is None else dim % getattr(module, name).ndim
    values = _taken(module, name)
    setattr(module, f"{name}_g", ms.Parameter(_norm_except(values, axis)))
    setattr(module, f"{name}_v", ms.Parameter(values))

    def weight(self: Any) -> Any:
        direction, length = getattr(self, f"{name}_v"), getattr(self, f"{name}_g")
        return normed_weight(direction, length, axis)

    _derive(module, {name: property(weight)})
    return module


def normed_weight(direction: Any, length: Any, dim: int = 0) -> Any:
    """The weight of a direction and a length."""
    return direction * (length / _norm_except(direction, dim))


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo weight_norm; the weight keeps its values."""
    return _restore(module, name, (f"{name}_g", f"{name}_v"))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """The weight over its greatest singular value, which steps of training follow."""
    axis = _output_axis(module) if dim is None else dim
    values = _taken(module, name)
    matrix = _as_matrix(values, axis)
    setattr(module, f"{name}_orig", ms.Parameter(values))
    for part, count in zip("uv", matrix.shape):
        module.register_buffer(f"{name}_{part}", _unit(ops.randn(count), eps))

    def weight(self: Any) -> Any:
        held = getattr(self, f"{name}_orig")
        u, v = (getattr(self, f"{name}_{part}") for part in "uv")
        return _over_norm(held, _as_matrix(held, axis), u, v)

    kind = type(module)

    def construct(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.training:
            held = ops.stop_gradient(_as_matrix(getattr(self, f"{name}_orig"), axis))
            v, u = _followed(held.T, getattr(self, f"{name}_u"), n_power_iterations, eps)
            setattr(self, f"{name}_u", u)
            setattr(self, f"{name}_v", v)
        return kind.construct(self, *args, **kwargs)

    _derive(module, {name: property(weight), "construct": construct})
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo spectral_norm; the weight keeps its values."""
    return _restore(module, name, (f"{name}_orig", f"{name}_u", f"{name}_v"))


def _followed(matrix: Any, v: Any, steps: int, eps: float) -> tuple[Any, Any]:
    """Steps towards the greatest singular vectors u and v, u first."""
    if steps < 1:
        raise ValueError(f"n_power_iterations is {steps}, and has to be 1 or more")
    for _ in range(steps):
        u = _unit(ops.mv(matrix, v), eps)
        v = _unit(ops.mv(matrix.T, u), eps)
    return ops.stop_gradient(u), ops.stop_gradient(v)


class _OfWeights(Module):
    """What the weights of a module are made of, by their names."""

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Any:
        return iter(list(self._cells))

    def __contains__(self, name: str) -> bool:
        return name in self._cells

    def __getitem__(self, name: str) -> Any:
        return self._cells[name]


class ParametrizationList(Module):
    """What a weight is made of: `original`, or several, and the modules that make it."""

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        super().__init__()
        originals = original
        for module in list(modules)[::-1]:
            if hasattr(module, "right_inverse"):
                originals = module.right_inverse(originals)
        self.count = len(originals) if isinstance(originals, (tuple, list)) else 0
        if not self.count:
            self.original = ms.Parameter(originals)
        for number in range(self.count):
            setattr(self, f"original{number}", ms.Parameter(originals[number]))
        self.steps = 0
        for module in modules:
            self.append(module)

    def append(self, module: Any) -> None:
        """One more module, which works on what the others made."""
        setattr(self, str(self.steps), module)
        self.steps += 1

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, number: int) -> Any:
        return getattr(self, str(range(self.steps)[number]))

    def right_inverse(self, value: Any) -> None:
        """Give `original`, or all of them, what the modules make a weight of."""
        for number in range(self.steps)[::-1]:
            value = getattr(self, str(number)).right_inverse(value)
        if not self.count:
            self.original.set_data(ops.stop_gradient(value))
        for number in range(self.count):
            getattr(self, f"original{number}").set_data(ops.stop_gradient(value[number]))

    def construct(self) -> Any:
        """The weight."""
        if self.count:
            parts = [getattr(self, f"original{number}") for number in range(self.count)]
            value = getattr(self, "0")(*parts)
        else:
            value = getattr(self, "0")(self.original)
        for number in range(1, self.steps):
            value = getattr(self, str(number))(value)
        return value


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a module compute a parameter from another one of the same place."""
    if is_parametrized(module, tensor_name):
        getattr(module.parametrizations, tensor_name).append(parametrization)
        return module
    values = _taken(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = _OfWeights()
    setattr(module.parametrizations, tensor_name, ParametrizationList([parametrization], values))

    def weight(self: Any) -> Any:
        return getattr(self.parametrizations, tensor_name)()

    def set_weight(self: Any, value: Any) -> None:
        getattr(self.parametrizations, tensor_name).right_inverse(value)

    _derive(module, {tensor_name: property(weight, set_weight)})
    return module


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Whether something of a module, or this, is computed."""
    held = module._cells.get("parametrizations")
    return held is not None and (tensor_name is None or tensor_name in held._cells)


class _WeightNorm(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def construct(self, weight_g: Any, weight_v: Any) -> Any:
        return normed_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Length and direction."""
        return _norm_except(weight, self.dim), weight


def parametrized_weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Weight norm as torch's parametrizations have it."""
    axis = -1 if dim is None else dim % getattr(module, name).ndim
    return register_parametrization(module, name, _WeightNorm(axis))


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Any, steps: int, dim: int, eps: float) -> None:
        super().__init__()
        self.steps, self.dim, self.eps = steps, dim, eps
        if weight.ndim > 1:
            matrix = _as_matrix(ms.Tensor(weight.asnumpy()), dim)
            u, v = _followed(matrix, _unit(ops.randn(matrix.shape[1]), eps), 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def construct(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return _unit(weight, self.eps)
        matrix = _as_matrix(weight, self.dim)
        u, v = self._u, self._v
        if self.training:
            u, v = _followed(ops.stop_gradient(matrix), v, self.steps, self.eps)
            self._u, self._v = u, v
        return _over_norm(weight, matrix, u, v)


def parametrized_spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Spectral norm as torch's parametrizations have it."""
    axis = _output_axis(module) if dim is None else dim
    made = _SpectralNorm(getattr(module, name), n_power_iterations, axis, eps)
    return register_parametrization(module, name, made)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a computed parameter one of its own again."""
    held = getattr(module.parametrizations, tensor_name)
    values = getattr(module, tensor_name) if leave_parametrized else held.original
    values = ms.Tensor(values.asnumpy())
    _underive(module, tensor_name)
    del module.parametrizations._cells[tensor_name]
    if not module.parametrizations._cells:
        del module._cells["parametrizations"]
    setattr(module, tensor_name, ms.Parameter(values))
    return module


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Give a module another one's parametrizations, with the values that they are made of."""
    if not is_parametrized(from_module):
        return to_module
    held = from_module.parametrizations._cells
    for name in list(held) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, ms.Parameter(ms.Tensor(getattr(from_module, name).asnumpy())))
        for number in range(held[name].steps):
            register_parametrization(to_module, name, getattr(held[name], str(number)))
        own = getattr(to_module.parametrizations, name)
        for part in list(held[name]._params):
            setattr(own, part, held[name]._params[part])
    return to_module

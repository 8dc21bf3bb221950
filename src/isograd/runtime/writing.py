"""Values written into tensors and Parameters, which is no part of what is differentiated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import nn, ops  # noqa: TID253
from mindspore.common import api  # noqa: TID253

from isograd.runtime.custom_gradients import FunctionCell


def write(target: Any, values: Any) -> Any:
    """Put values into a tensor or a Parameter; the tensor.

    By copy_: after set_data an optimizer that has stepped leaves a Parameter as it is.  What an
    index took of a Parameter (`weight[2]`) is written by its elements: copy_ of it would be lost.
    """
    made = _tensor(values)
    is_parameter = isinstance(target, ms.Parameter)
    return _WRITTEN_PARAMETER(target, made) if is_parameter else _WRITTEN(target, made)


class _Written(nn.Cell):  # type: ignore[misc]
    """Values in a tensor's memory, as torch writes to `x.data`: its gradient goes on as it did.

    Of a view made before `no_grad` MindSpore would forget what it was made of (2.10); a slice of
    all of it is made inside.  Compiled, the values stand in the tensor's place.
    """

    def __call__(self, held: Any, values: Any) -> Any:
        if tuple(held.shape) != tuple(values.shape):
            return _put_all(held, values)
        if held.size:
            with api._no_grad():
                taken(held)[(slice(None),) * held.ndim] = values.astype(held.dtype)
        return held

    def construct(self, held: Any, values: Any) -> Any:
        return values.astype(held.dtype)

    def bprop(self, held: Any, values: Any, out: Any, dout: Any) -> Any:
        return dout, ops.zeros_like(values)


class _Replaced(FunctionCell):
    """Values of a memory of their own, with the gradient of what they stand for."""

    def construct(self, held: Any, values: Any) -> Any:
        return values

    def bprop(self, held: Any, values: Any, out: Any, dout: Any) -> Any:
        return dout, ops.zeros_like(values)


class _WrittenParameter(nn.Cell):  # type: ignore[misc]
    """Values in a Parameter, in the static graph as well."""

    def __call__(self, held: Any, values: Any) -> Any:
        return _put_all(held, values)

    def construct(self, held: Any, values: Any) -> Any:
        ops.assign(held, values.astype(held.dtype))
        return held


# One statement each: a port takes those that it uses.
_WRITTEN = _Written()
_REPLACED = _Replaced()
_WRITTEN_PARAMETER = _WrittenParameter()


def write_eagerly(target: Any, values: Any) -> Any:
    """As `write`, where nothing is compiled and no gradient is taken: initial values, states."""
    return _put_all(target, _tensor(values))


def _put_all(target: Any, made: Any) -> Any:
    with api._no_grad():
        is_part = not isinstance(target, ms.Parameter) and taken(target).parent_tensor_ is not None
        if is_part:
            target[...] = made.astype(target.dtype)
        elif tuple(made.shape) == tuple(target.shape):
            target.copy_(made.astype(target.dtype))
        else:
            target.set_data(made.astype(target.dtype), slice_shape=True)
    return target


def set_data(owner: Any, values: Any) -> Any:
    """`owner.data = values`, of a tensor or of anything else; the owner.

    What was read of a Parameter before (`old = p.data`) keeps its values, as in torch.
    """
    if not isinstance(owner, ms.Tensor):
        owner.data = values
        return owner
    made = _tensor(values)
    is_alike = made.dtype == owner.dtype and tuple(made.shape) == tuple(owner.shape)
    if isinstance(owner, ms.Parameter) and is_alike:
        with api._no_grad():
            owner.set_data(made.copy())  # a Parameter of a view cannot be written to
    elif is_alike:
        # Views taken before keep their values.
        owner[...] = _REPLACED(owner, ops.stop_gradient(unshared(made)))
    else:
        write(owner, made)
    return owner


def write_data(owner: Any, values: Any) -> Any:
    """`owner.data += …`, of a tensor, whose views see it, or of anything else; the owner."""
    if isinstance(owner, ms.Tensor):
        return write(owner, values)
    owner.data = values
    return owner


def overwrite_data(held: Any, values: Any) -> Any:
    """`held.data.copy_(values)`; the tensor."""
    return write(held, ops.broadcast_to(_tensor(values), held.shape))


def write_elements(owner: Any, key: Any, values: Any) -> Any:
    """`owner.data[key] = values`, of a tensor or of anything else; the owner."""
    if not isinstance(owner, ms.Tensor):
        data_of(owner)[key] = values
        return owner
    place = _key(key)
    if isinstance(place, ms.Tensor) and place.ndim and not place.size:
        return owner  # nothing to write, which MindSpore refuses
    made = with_elements(owner, place, values)
    return (_WRITTEN_PARAMETER if isinstance(owner, ms.Parameter) else _WRITTEN)(owner, made)


def with_elements(owner: Any, key: Any, values: Any) -> Any:
    """A tensor's values with others at some places, without a gradient."""
    place = _key(key)
    made = ops.stop_gradient(unshared(owner))
    given = ops.stop_gradient(values) if isinstance(values, ms.Tensor) else values
    made[place] = _without_leading_axes(made, place, given)
    return made


def put_data(held: Any, key: Any, values: Any) -> Any:
    """Values written into the data of `held[key]`, a part of a tensor or one that is held; held."""
    if isinstance(held, ms.Tensor):
        return held if _takes_copy(key) else write_elements(held, key, values)
    if not isinstance(held[key], ms.Tensor):
        write(held[key].data, values)
        return held
    new = overwrite_data(held[key], values)
    if isinstance(held, tuple):
        return _WITH_ELEMENT(held, key, new)
    held[key] = new  # the tensor itself, unless this is compiled
    return held


class _WithElement(nn.Cell):  # type: ignore[misc]
    """A tuple whose tensor was written to; compiled, one with another tensor in its place."""

    def __call__(self, held: Any, key: Any, new: Any) -> Any:
        return held

    def construct(self, held: Any, key: Any, new: Any) -> Any:
        return (*held[:key], new, *held[key + 1 :])


_WITH_ELEMENT = _WithElement()


def store(owner: Any, key: Any, values: Any) -> Any:
    """`owner[key] = values`, at places that MindSpore may refuse; the owner."""
    if isinstance(owner, ms.Parameter):
        return write_elements(owner, key, values)
    if not isinstance(owner, ms.Tensor):
        owner[key] = values
        return owner
    place = _key(key)
    if not isinstance(place, ms.Tensor) or place.ndim == 0:
        owner[place] = _without_leading_axes(owner, place, values)
    elif place.dtype == ms.bool_:
        return _STORED_BY_MASK(owner, place, _tensor(values))
    elif place.size:  # else none to write
        owner[place] = _without_leading_axes(owner, place, values)
    return owner


class _StoredByMask(nn.Cell):  # type: ignore[misc]
    """Values where a mask of leading axes is true; compiled, by the rows that they are taken from.

    The static graph would broadcast several values to the whole tensor (2.10).
    """

    def __call__(self, owner: Any, mask: Any, values: Any) -> Any:
        if mask.size:
            owner[mask] = _without_leading_axes(owner, mask, values)
        return owner

    def construct(self, owner: Any, mask: Any, values: Any) -> Any:
        rest = owner.shape[mask.ndim :]
        rows = values.astype(owner.dtype)
        if values.ndim > len(rest):
            while rows.ndim > len(rest) + 1:
                rows = rows.squeeze(0)
            rows = ops.broadcast_to(rows, (-1, *rest))
            # The first stands where nothing is taken: there may be no other, or a single one.
            places = ops.clamp(ops.cumsum(mask.reshape(-1).astype(ms.int32), 0), 0, len(rows))
            rows = ops.cat((ops.zeros((1, *rest), rows.dtype), rows))
            rows = ops.gather(rows, places, 0).reshape((*mask.shape, *rest))
        where = ops.broadcast_to(mask.reshape((*mask.shape, *(1,) * len(rest))), owner.shape)
        return ops.where(where, rows, owner)


_STORED_BY_MASK = _StoredByMask()


def updated(held: Any, values: Any) -> Any:
    """What `held += …` leaves under the name: a Parameter is changed, anything else is new."""
    return _WRITTEN_PARAMETER(held, _tensor(values)) if isinstance(held, ms.Parameter) else values


def overwrite(held: Any, values: Any) -> Any:
    """Write values into a tensor that has other names, or into a Parameter, and return it."""
    if isinstance(held, ms.Parameter):
        return _WRITTEN_PARAMETER(held, ops.broadcast_to(_tensor(values), held.shape))
    held[...] = unshared(values, held)
    return held


def overwrite_all(held: Any, values: Any) -> Any:
    """Write several results into the tensors of `out=(a, b)`, and return these."""
    for one, value in zip(held, values, strict=True):
        overwrite(one, sized(one, value))
    return held


def sized(held: Any, values: Any) -> Any:
    """The result that goes into the tensor of `out=`, which gets its shape, as torch's does."""
    if tuple(held.shape) != tuple(values.shape):
        held.assign_value(ops.zeros(values.shape, held.dtype))
    return values


def put(held: Any, key: Any, values: Any) -> Any:
    """Write values into `held[key]`, a part of a tensor or a tensor that is held; it.

    What a tensor or a list of positions takes is a copy, which others do not see.
    """
    if not isinstance(held, ms.Tensor) and isinstance(held[key], ms.Tensor):
        return overwrite(held[key], values)
    if _takes_copy(key):
        return _tensor(values)
    elements(held)[key] = values
    return held[key]


def put_view(held: Any, view: Callable[[Any], Any], key: Any, values: Any) -> None:
    """Write values into a part of what `view` takes of a tensor; that may lie in another order."""
    if not isinstance(held, ms.Tensor):
        view(held)[key] = values
        return
    places = view(ms.Tensor(np.arange(held.size).reshape(held.shape))).asnumpy()
    parts = key if isinstance(key, tuple) else (key,)
    plain = [part.asnumpy() if isinstance(part, ms.Tensor) else part for part in parts]
    written = np.asarray(places[tuple(plain)])
    order = np.arange(held.size)
    order[written.reshape(-1)] = held.size + np.arange(written.size)
    new = ops.broadcast_to(_tensor(values).astype(held.dtype), written.shape or (1,))
    both = ops.cat((held.reshape(-1), new.reshape(-1)))
    overwrite(held, ops.gather(both, ms.Tensor(order), 0).reshape(held.shape))


def taken(part: Any) -> Any:
    """`x[positions]`, into which is written, without a way back to x: a copy, as in torch.

    MindSpore 2.10 remembers x, and writes to it as well.
    """
    inner = part
    while isinstance(inner, ms.Tensor) and inner.parent_tensor_ is not None:
        if _takes_copy(inner.index_of_parent_):
            inner.parent_tensor_ = inner.index_of_parent_ = None
            break
        inner = inner.parent_tensor_
    return part


def unshared(values: Any, held: Any = None) -> Any:
    """Values of their own, in the shape of what they go into.

    `x[...] = y` of MindSpore 2.10 makes x and y one memory; of a smaller y all rows of x are one.
    """
    if not isinstance(values, ms.Tensor):
        return values
    if held is not None and values.shape != held.shape:
        return ops.broadcast_to(values, held.shape)
    return ops.deepcopy(values)


def _takes_copy(key: Any) -> bool:
    """Whether an index holds a list or a tensor of positions, or a mask."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, list) or getattr(part, "ndim", 0) for part in parts)


class elements:  # noqa: N801  # stands where a function would
    """`elements(x)[…] = value`: an element of a tensor's data, or of a Parameter.

    `x[…] = value` leaves a Parameter as a view of itself, which cannot be written to by an
    optimizer, or by loading a checkpoint (2.10).
    """

    def __init__(self, owner: Any) -> None:
        self._owner = data_of(owner)

    def __getitem__(self, key: Any) -> Any:
        owner = self._owner
        if not isinstance(owner, ms.Tensor):
            return owner[key]
        return (ops.stop_gradient(owner) if isinstance(owner, ms.Parameter) else owner)[_key(key)]

    def __setitem__(self, key: Any, values: Any) -> None:
        if isinstance(self._owner, ms.Tensor):
            write_elements(self._owner, key, values)
        else:
            self._owner[key] = values


class stored_elements(elements):  # noqa: N801  # stands where a function would
    """`stored_elements(x)[…] = value`: the gradient goes to the value."""

    def __setitem__(self, key: Any, values: Any) -> None:
        store(self._owner, key, values)


def _without_leading_axes(owner: Any, key: Any, values: Any) -> Any:
    """Values with no more axes than `owner[key]`; torch leaves leading ones of one element out."""
    if isinstance(values, ms.Tensor) and values.ndim and values.shape[0] == 1:
        most = owner[key].ndim
        while values.ndim > most and values.shape[0] == 1:
            values = values.squeeze(0)
    return values


def _key(key: Any) -> Any:
    """An index as MindSpore takes it; of what `map` made the static graph loses the gradient."""
    if not isinstance(key, tuple):
        return position(key)
    found: tuple[Any, ...] = ()
    for part in key:
        found = (*found, position(part))
    return found


def position(part: Any) -> Any:
    """A part of an index as MindSpore takes it: no array, number or range of numpy's.

    The static graph knows no `range` to ask for; of a tensor, number or slice it asks nothing else.
    """
    if part is None or isinstance(part, (ms.Tensor, int, float, list, tuple)):
        return part
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        is_plain = all([n is None or isinstance(n, (int, ms.Tensor)) for n in bounds])  # noqa: C419
        return part if is_plain else slice(*map(position, bounds))
    if isinstance(part, np.ndarray):
        return ms.Tensor(part)
    if isinstance(part, np.generic):
        return part.item()
    if hasattr(part, "start"):  # a range
        return ms.Tensor(np.arange(part.start, part.stop, part.step))
    return part


def filled(held: Any, values: Any) -> Any:
    """Values in the shape and the dtype of what they stand for."""
    return ops.broadcast_to(_tensor(values).astype(held.dtype), held.shape)


def data_of(owner: Any) -> Any:
    """`owner.data` that is to be written to: a tensor itself, of anything else what it has."""
    return owner if isinstance(owner, (ms.Tensor, np.ndarray)) else getattr(owner, "data", owner)


def _tensor(values: Any) -> Any:
    return values if isinstance(values, ms.Tensor) else ms.Tensor(values)


def augmented(sign: str, held: Any, value: Any) -> Any:
    """What `held += value` leaves under the name: a tensor is changed, a number is new."""
    name = {
        "+": "add", "-": "sub", "*": "mul", "/": "truediv", "**": "pow", "//": "floordiv",
        "%": "mod", "@": "matmul", "&": "and_", "|": "or_", "^": "xor",
    }[sign]  # fmt: skip
    if isinstance(held, ms.Tensor):
        # The gradient of a product reads the old values, which are overwritten.
        is_product = sign in ("**", "@") or (sign in ("*", "%") and isinstance(value, ms.Tensor))
        old = unshared(held) if is_product else held
        return overwrite(held, getattr(operator, name)(old, value))
    return getattr(operator, "i" + name.rstrip("_"))(held, value)


def in_place(layer: Any) -> Any:
    """A layer that writes what it makes into what it is called with."""
    kind = type(layer)
    copies = not issubclass(kind, (nn.ReLU, nn.ReLU6))  # whose gradients read the result alone

    class InPlace(kind):  # type: ignore[misc,valid-type]  # whichever class the layer is of
        def construct(self, input: Any) -> Any:
            return overwrite(input, super().construct(unshared(input) if copies else input))

    InPlace.__name__, InPlace.__qualname__ = kind.__name__, kind.__qualname__
    layer.__class__ = InPlace
    return layer


def set_part(held: Any, name: str, values: Any) -> None:
    """`held.real = values` or `held.imag = values`, of a tensor or of anything else."""
    if not isinstance(held, ms.Tensor):
        setattr(held, name, values)
    elif not held.is_complex():
        overwrite(held, values)
    else:
        kind = ms.float32 if held.dtype == ms.complex64 else ms.float64
        part = ops.broadcast_to(_tensor(values).astype(kind), held.shape)
        real, imaginary = ops.real(held), ops.imag(held)
        overwrite(held, ops.Complex()(*((part, imaginary) if name == "real" else (real, part))))

"""MindSpore's containers where torch's take or run more than they do."""

from __future__ import annotations

from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253


class SequentialOfAttributes(nn.SequentialCell):  # type: ignore[misc]
    """A SequentialCell that runs what is set as an attribute, too, in that order.

    torch.nn.Sequential runs all of its children; MindSpore's runs those that its constructor and
    `append` got, and skips others without a word.
    """

    def insert_child_to_cell(self, child_name: str, child_cell: Any) -> None:
        """One more child, which is run behind the others."""
        super().insert_child_to_cell(child_name, child_cell)
        self.cell_list = [cell for cell in self._cells.values() if cell is not None]


class DictOfCells(nn.Cell):  # type: ignore[misc]
    """Cells by their names, of any class.

    torch's ModuleDict holds any module and may stand in a ModuleList; MindSpore's CellDict raises
    TypeError for containers, and its CellList for a CellDict.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if type(self).construct is nn.Cell.construct:
            # By this the compiler knows MindSpore's CellDict, and calls no cell that has it.
            self.__cell_as_dict__ = True
        self.update({} if modules is None else modules)

    def __getitem__(self, name: str) -> Any:
        return self._cells[name]

    def __setitem__(self, name: str, cell: Any) -> None:
        if not isinstance(cell, nn.Cell) or (hasattr(self, name) and name not in self._cells):
            raise KeyError(f"{name!r} is an attribute of a cell, or its value no cell")
        setattr(self, name, cell)

    def __delitem__(self, name: str) -> None:
        del self._cells[name]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Any:
        return iter(self._cells)

    def __contains__(self, name: object) -> bool:
        return name in self._cells

    def __getattr__(self, name: str) -> Any:
        if name in ("pop", "clear"):
            return getattr(self._cells, name)
        return super().__getattr__(name)

    def keys(self) -> Any:
        """The names."""
        return self._cells.keys()

    def values(self) -> Any:
        """The cells."""
        return self._cells.values()

    def items(self) -> Any:
        """The cells with their names."""
        return self._cells.items()

    def update(self, modules: Any) -> None:
        """More cells, of a mapping or of pairs."""
        pairs = modules.items() if hasattr(modules, "items") else modules
        for name, cell in pairs:
            self[name] = cell


class ModeCell(nn.Cell):  # type: ignore[misc]
    """A cell whose own `train` is called for it, also where a cell above it changes the mode.

    torch's `train` calls that of every child; MindSpore's set_train sets the children's flags and
    asks none of them.
    """

    def train(self, mode: bool = True) -> Any:
        """Training or inference, for this cell and all below it."""
        self._phase = "train" if mode else "predict"
        self.add_flags(training=mode)
        for cell in self.cells():
            cell.set_train(mode)
        return self

    def eval(self) -> Any:
        """Inference."""
        return self.train(False)

    def set_train(self, mode: bool = True) -> Any:
        """MindSpore's name of `train`."""
        return self.train(mode)

    def add_flags_recursive(self, **flags: Any) -> Any:
        """What a cell above calls instead of set_train."""
        mode = flags.pop("training", None)
        if mode is not None:
            self.train(mode)
        return super().add_flags_recursive(**flags) if flags else self


def set_mode(module: Any, mode: Any = True) -> Any:
    """Training or inference of a cell, or of what has torch's method; the module."""
    if isinstance(module, nn.Cell):
        return module.set_train(mode)
    if not isinstance(mode, bool):
        return module.train(mode)  # of no module: `trainer.train(loader)`
    return module.train() if mode else module.eval()


def start_training(module: Any) -> Any:
    """Training for a module that was just made and its parts; the module.

    torch's modules start in training and keep the modes of modules that they are given: parts whose
    mode was set before stay in it.
    """
    for _, cell in module.cells_and_names():
        if "training" not in getattr(cell, "_func_graph_flags", {}):
            cell.add_flags(training=True)
    return module


#: What MindSpore's layers call what torch's hold.
_NATIVE = {
    "weight": ("gamma", "embedding_table", "w"),
    "bias": ("beta",),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
    "in_features": ("in_channels",),
    "out_features": ("out_channels",),
    "num_embeddings": ("vocab_size",),
    "embedding_dim": ("embedding_size",),
    "groups": ("group",),
    "eps": ("epsilon",),
}
#: What torch's hold and MindSpore's do not.
_OF_CONVOLUTIONS = ("padding_mode", "transposed", "output_padding")
_CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.Conv1dTranspose,
    nn.Conv2dTranspose,
    nn.Conv3dTranspose,
)


def native_name(module: Any, name: str) -> str:
    """What a layer calls an attribute that torch calls `name`: `gamma` of a norm's `weight`."""
    if isinstance(module, nn.Cell) and not hasattr(module, name):
        for other in _NATIVE.get(name, ()):
            if hasattr(module, other):
                return other
    return name


def layer_attribute(module: Any, name: str) -> Any:
    """An attribute by torch's name, of a layer of MindSpore's or of anything else."""
    return getattr(module, native_name(module, name))


def layer_size(module: Any, name: str) -> Any:
    """A kernel size, stride, padding or dilation; of a convolution one number for each axis.

    MindSpore's holds two paddings for each axis, and its Conv1d an axis in front of its own.  What
    it does not hold at all is as in torch where nothing was said; others are the runtime's.
    """
    is_own = isinstance(module, _CONVOLUTIONS) and not hasattr(module, "groups")
    if name in _OF_CONVOLUTIONS and is_own:
        axes = len(module.kernel_size) - isinstance(module, (nn.Conv1d, nn.Conv1dTranspose))
        is_transposed = isinstance(module, _CONVOLUTIONS[3:])
        return {"padding_mode": "zeros", "transposed": is_transposed}.get(name, (0,) * axes)
    sizes = getattr(module, name)
    if not is_own:
        return sizes
    axes = len(module.kernel_size)
    if name == "padding" and module.pad_mode != "pad":
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            return module.pad_mode
        sizes = (0,) * axes
    elif name == "padding":
        sizes = (sizes,) * axes if isinstance(sizes, int) else tuple(sizes[::2])
    return sizes[1:] if isinstance(module, (nn.Conv1d, nn.Conv1dTranspose)) else sizes


def set_buffer(owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`, which may be a buffer of a cell, by torch's name.

    MindSpore's cells bind a buffer to another tensor by `register_buffer` alone.  A Parameter, a
    number or None stays what it is.
    """
    buffers = owner.__dict__.get("_buffers", {}) if isinstance(owner, nn.Cell) else {}
    is_buffer = name in buffers and not isinstance(value, (ms.Parameter, nn.Cell))
    if is_buffer and isinstance(value, ms.Tensor):
        lasts = name not in owner._non_persistent_buffers_set
        owner.register_buffer(name, value, lasts)
        return
    if name in buffers and not is_buffer:  # torch's modules take it in the buffer's place
        del buffers[name]
    setattr(owner, native_name(owner, name), value)


def set_attribute(cell: Any, name: str, value: Any) -> None:
    """`cell.name = value`, where value may be a buffer of another cell and is none of this one's.

    MindSpore's Cell (2.10) registers a tensor that is a buffer anywhere.
    """
    if isinstance(value, ms.Tensor) and not isinstance(value, ms.Parameter):
        object.__setattr__(cell, name, value)
    else:
        setattr(cell, name, value)


def strict_zip(*rows: Any) -> Any:
    """`zip(..., strict=True)` of lists, tuples and CellLists, also in MindSpore's static graph.

    The compiler knows zip without `strict` alone.  Raises ValueError where the lengths differ.
    """
    whole = [row if hasattr(row, "__len__") else list(row) for row in rows]
    for row in whole:
        if len(row) != len(whole[0]):
            raise ValueError("zip() arguments are of different lengths")
    return zip(*whole)  # noqa: B905 - the compiler knows no `strict`

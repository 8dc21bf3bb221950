"""torch.nn's containers: cells by number or name, parameters by number or name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import mindspore as ms  # noqa: TID253
from mindspore import nn  # noqa: TID253

from isograd.runtime.torch_module import Module


class _Numbered(Module):
    """Cells under the names "0", "1", … in order."""

    def _put(self, cells: Iterable[Any]) -> None:
        """These cells and no others, numbered anew."""
        kept = list(cells)
        self._cells.clear()
        for number, cell in enumerate(kept):
            self.add_module(str(number), cell)

    def _name_of(self, index: int) -> str:
        names: list[str] = list(self._cells)
        if not -len(names) <= index < len(names):
            raise IndexError(f"index {index} is out of range")
        return names[index]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._cells.values()))

    def __bool__(self) -> bool:
        return True

    def __contains__(self, cell: Any) -> bool:
        return any(cell is own for own in self._cells.values())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(list(self._cells.items())[index])
        return self._cells[self._name_of(int(index))]

    def _part(self, items: list[tuple[str, Any]]) -> Any:
        part = type(self)()
        for number, (_, cell) in enumerate(items):
            part._cells[str(number)] = cell
        return part

    def __setitem__(self, index: int, cell: Any) -> None:
        name = self._name_of(int(index))
        self._cells[name] = None
        self.add_module(name, cell)

    def __delitem__(self, index: Any) -> None:
        kept = list(self._cells.values())
        del kept[index]
        self._put(kept)

    def append(self, module: Any) -> Any:
        """One more at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Any]) -> Any:
        """More at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Any) -> Any:
        """One more before an index; those behind get the next numbers."""
        kept = list(self._cells.values())
        kept.insert(index, module)
        self._put(kept)
        return self

    def pop(self, key: Any) -> Any:
        """Take one out."""
        cell = self[key]
        del self[key]
        return cell


class Sequential(_Numbered, nn.SequentialCell):  # type: ignore[misc]
    """torch.nn.Sequential: cells one after the other, or a mapping of names to cells."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, cell in args[0].items():
                self.add_module(name, cell)
        else:
            self._put(args)

    def _part(self, items: list[tuple[str, Any]]) -> Any:
        part = Sequential()
        for name, cell in items:
            part._cells[name] = cell
        return part

    def __delitem__(self, index: Any) -> None:
        for name in (
            list(self._cells)[index] if isinstance(index, slice) else [self._name_of(index)]
        ):
            del self._cells[name]
        numbers = all(name.isdigit() for name in self._cells)
        if numbers:
            self._put(self._cells.values())

    def __add__(self, other: Any) -> Any:
        return Sequential(*self, *other)

    def construct(self, input: Any) -> Any:
        """The last cell's result."""
        for cell in self._cells.values():
            input = cell(input)
        return input


class ModuleList(_Numbered, nn.CellList):  # type: ignore[misc]
    """torch.nn.ModuleList."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._put(modules or ())

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> Any:
        return ModuleList([*self, *other])

    def construct(self, *inputs: Any) -> Any:
        """A list has none."""
        raise NotImplementedError("a ModuleList has no construct")


class ModuleDict(Module, nn.CellDict):  # type: ignore[misc]
    """torch.nn.ModuleDict."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._cells[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self._cells.setdefault(key, None)
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._cells[key]

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._cells))

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def __bool__(self) -> bool:
        return True

    def keys(self) -> Any:
        """The names."""
        return self._cells.keys()

    def values(self) -> Any:
        """The cells."""
        return self._cells.values()

    def items(self) -> Any:
        """Names and cells."""
        return self._cells.items()

    def clear(self) -> None:
        """Take all out."""
        self._cells.clear()

    def pop(self, key: str) -> Any:
        """Take one out."""
        return self._cells.pop(key)

    def update(self, modules: Any) -> None:
        """More, or others for the same names."""
        for key, module in modules.items() if hasattr(modules, "items") else modules:
            self[key] = module

    def construct(self, *inputs: Any) -> Any:
        """A mapping has none."""
        raise NotImplementedError("a ModuleDict has no construct")


def _parameter(value: Any) -> Any:
    return value if isinstance(value, (ms.Parameter, nn.Cell)) else ms.Parameter(value)


class ParameterList(Module):
    """torch.nn.ParameterList."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> ParameterList:
        """One more at the end."""
        setattr(self, str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """More at the end."""
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def elements(self) -> list[Any]:
        """All of them, in a static graph, too: `self[0]` is a constant there, and never learns."""
        return [getattr(self, str(place)) for place in range(len(self))]

    def __getitem__(self, index: Any) -> Any:
        return self.elements()[index]

    def __setitem__(self, index: int, value: Any) -> None:
        if isinstance(value, nn.Cell):
            setattr(self, str(index % len(self)), value)
        else:
            self._params[str(index % len(self))] = _parameter(value)

    def __len__(self) -> int:
        return len(self._params) + len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.elements())


class ParameterDict(Module):
    """torch.nn.ParameterDict, of Parameters and of their lists and dictionaries."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: list[str] = []
        if parameters is not None:
            self.update(parameters)

    def elements(self) -> dict[str, Any]:
        """All of them, in a static graph, too: `self["a"]` is a constant there."""
        return {name: getattr(self, name) for name in self._names}

    def __getitem__(self, key: str) -> Any:
        return self.elements()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key not in self._names:
            self._names.append(key)
        if not isinstance(value, nn.Cell):
            self._params.setdefault(key, None)
        setattr(self, key, _parameter(value))

    def __delitem__(self, key: str) -> None:
        self._names.remove(key)
        del (self._params if key in self._params else self._cells)[key]

    def __len__(self) -> int:
        return len(self.elements())

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.elements()))

    def __contains__(self, key: str) -> bool:
        return key in self.elements()

    def get(self, key: str, default: Any = None) -> Any:
        """What has a name, or the default."""
        return self.elements().get(key, default)

    def pop(self, key: str) -> Any:
        """Remove a name; what it meant."""
        value = self[key]
        del self[key]
        return value

    def keys(self) -> Any:
        """The names."""
        return self.elements().keys()

    def values(self) -> Any:
        """The parameters."""
        return self.elements().values()

    def items(self) -> Any:
        """Names and parameters."""
        return self.elements().items()

    def update(self, parameters: Any) -> None:
        """More, or others for the same names; those of a plain dictionary in the names' order."""
        is_kept = isinstance(parameters, (OrderedDict, ParameterDict))
        pairs = parameters.items() if hasattr(parameters, "items") else parameters
        for key, value in pairs if is_kept or pairs is parameters else sorted(pairs):
            self[key] = value

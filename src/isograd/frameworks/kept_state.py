"""What modules keep between calls in plain attributes: a hidden state, a cache, a counter.

Buffers and parameters have their own care in the adapters.  A recurrent network that keeps
`self.hidden`, a decoder that fills `self.cache[i]`, a layer that counts its calls would answer
otherwise at every replay; here their attributes are put back as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Tensor = TypeVar("Tensor")
#: Deeper than this, containers in containers are not looked into.
_DEEPEST = 4
#: Containers with more parts, such as a vocabulary, hold no state.
_MOST_PARTS = 4096
#: Where modules of either framework keep parameters, buffers and modules by their name.
_REGISTRIES = ("_parameters", "_buffers", "_modules", "_params", "_cells")


class KeptState:
    """The attributes of modules as they are now.

    places: the `__dict__` of each module.  internal: attributes that the framework manages itself.
    copy, overwrite: how a tensor is copied, and how it is given the values of such a copy.
    """

    def __init__(
        self,
        places: Iterable[dict[str, Any]],
        internal: frozenset[str],
        is_tensor: Callable[[Any], bool],
        copy: Callable[[Any], Tensor],
        overwrite: Callable[[Any, Tensor], None],
    ) -> None:
        self._internal = internal
        self._is_tensor = is_tensor
        self._copy = copy
        self._overwrite = overwrite
        self._containers: list[tuple[Any, Any]] = []
        self._tensors: list[tuple[Any, Any]] = []
        self._bound = [
            (place, {key: value for key, value in place.items() if key not in internal})
            for place in places
        ]
        for _, before in self._bound:
            for value in before.values():
                self._note(value, _DEEPEST)

    def _note(self, value: Any, depth: int) -> None:
        if self._is_tensor(value):
            self._tensors.append((value, self._copy(value)))
        elif depth and type(value) in (list, dict, set, tuple) and len(value) <= _MOST_PARTS:
            if type(value) is not tuple:
                self._containers.append((value, value.copy()))
            for part in value.values() if isinstance(value, dict) else value:
                self._note(part, depth - 1)

    def put_back(self) -> None:
        """Bind what was bound, fill containers as they were, and give tensors their values.

        What has become a parameter or a module by now stays one.
        """
        for place, before in self._bound:
            for key in [k for k in place if k not in before and k not in self._internal]:
                del place[key]
            registered = {name for key in _REGISTRIES for name in place.get(key) or ()}
            place.update({k: v for k, v in before.items() if k not in registered})
        for container, content in self._containers:
            if isinstance(container, list):
                container[:] = content
            else:
                container.clear()
                container.update(content)
        for tensor, values in self._tensors:
            self._overwrite(tensor, values)

"""The names of torch: which exist, how else they are spelled, and what a call of each returns."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from isograd.scan import behaviour
from isograd.scan.values import (
    ANY_MODULE,
    ARRAY,
    COMPUTED,
    NO,
    PARAMETER,
    PLAIN,
    RAGGED,
    SHAPE,
    TENSOR,
    TENSORS,
    VIEW,
    Items,
    Made,
    Mapping,
    Plain,
    Tensor,
    Value,
)

TABLE = Path(__file__).with_name("torch_names.json")
_TENSOR = "torch.Tensor."
#: Old spellings of torch's own packages.
_RENAMED = (
    ("torch.nn.modules.", "torch.nn."),
    ("torch.functional.", "torch."),
    ("torch.tensor.", "torch."),
)


class TorchNames:
    """What torch's own names are; collected once by `isograd.scan.collect`, never imported."""

    def __init__(
        self, table: dict[str, dict[str, str]], members: dict[str, dict[str, str]]
    ) -> None:
        self.kinds = table["names"]
        self.spelled = table["spelled"]
        self.tensor = members["torch.Tensor"]
        self.module = members["torch.nn.Module"]
        self.optimizer = members["torch.optim.Optimizer"]
        self.scheduler = members["torch.optim.lr_scheduler.LRScheduler"]
        self.scaler = members["torch.amp.GradScaler"]
        self.named = {name: tuple(parts.split()) for name, parts in table["results"].items()}
        self.parts = frozenset(part for parts in self.named.values() for part in parts)
        self._canonical: dict[str, str] = {}
        self._members: dict[str, dict[str, str]] = {}

    def canonical(self, name: str) -> str:
        """The public name: torch.nn.modules.conv.Conv2d is torch.nn.Conv2d."""
        found = self._canonical.get(name)
        if found is None:
            found = self._canonical[name] = self._resolve(name)
        return found

    def _resolve(self, name: str) -> str:
        if name in self.kinds:
            return name
        if name in self.spelled:
            return self.spelled[name]
        if name.startswith("torch.torch."):
            return self.canonical(name[len("torch.") :])
        head, _, last = name.rpartition(".")
        if head in self.spelled and last:
            return f"{self.spelled[head]}.{last}"
        for old, new in _RENAMED:
            if name.startswith(old):
                shorter = new + name.rpartition(".")[2]
                return self.spelled.get(shorter, shorter)
        return name

    def kind(self, name: str) -> str:
        """One letter, as in `collect`: f function, M class of modules, m package and so on.

        Empty where torch has no such name; `torchvision` counts as having every name.
        """
        kind = self.kinds.get(name)
        if kind is not None:
            return kind
        if name == "torch.__version__":
            return "o"
        if name.startswith("torchvision"):
            return "m" if name.count(".") < 2 else _vision_kind(name)
        if name.startswith("einops"):
            return _einops_kind(name)
        if name.startswith(_TENSOR) and name[len(_TENSOR) :] in self.tensor:
            return "f"
        if name.startswith("torch.nn.Module.") and name[16:] in self.module:
            return "f"
        return ""

    def members_of(self, package: str) -> dict[str, str]:
        """The public names directly in a package, with their kinds."""
        if package not in self._members:
            start = f"{package}."
            self._members[package] = {
                name[len(start) :]: kind
                for name, kind in self.kinds.items()
                if name.startswith(start) and "." not in name[len(start) :]
            }
        return self._members[package]

    def known_part(self, name: str) -> str:
        """The longest beginning that torch has: torch.nn.Linear of torch.nn.Linear.__name__."""
        while name.count(".") > 1 and not self.kind(name):
            head = name.rpartition(".")[0]
            if self.kind(head) in ("m", ""):
                return name
            name = head
        return name

    def result(self, name: str, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """What a call of torch's function, class or method returns."""
        kind = self.kind(name)
        if name in ("torch.nn.Parameter", "torch.nn.Buffer"):
            return PARAMETER
        if name in behaviour.TENSOR_CLASSES or name in behaviour.TENSOR_FUNCTIONS:
            return TENSOR
        if kind in ("M", "O", "S") or behaviour.is_distribution(name):
            return Made(name)
        if name.endswith("GradScaler"):
            return Made("torch.amp.GradScaler")
        if kind in ("m", "") or behaviour.is_unknown(name):
            return None
        last = name.rpartition(".")[2]
        if name.startswith("einops"):
            return _einops_result(last, arguments)
        if name.startswith(_TENSOR):
            found = self.method_result(last, [TENSOR, *arguments], keywords)
            return self._with_names(name, found)
        if name.startswith("torch.nn.Module."):
            return module_result(last)
        if name.startswith(behaviour.NO_TENSOR_MODULES):
            return _of_module_without_tensors(name, kind)
        if name.startswith("torchvision"):
            return Made(name) if kind == "M" else None
        if kind == "c":
            return PLAIN
        return self._with_names(name, self.method_result(last, arguments, keywords))

    def _with_names(self, name: str, found: Value) -> Value:
        """A result whose parts torch names; of what a dimension makes several, only several."""
        parts = self.named.get(name)
        is_one = name.rpartition(".")[2] in behaviour.SEVERAL_BY_DIMENSION and found is not TENSORS
        if parts is None or is_one:
            return found
        several = behaviour.PARTS_OF_SEVERAL
        values = tuple(TENSORS if (name, part) in several else TENSOR for part in parts)
        return Items(TENSORS.item if set(values) == {TENSOR} else None, values, parts)

    def method_result(self, last: str, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """What a function or method of this name returns; arguments count the tensor itself."""
        if last in behaviour.SEVERAL:
            return TENSORS
        if last in behaviour.SEVERAL_BY_DIMENSION:
            return TENSORS if "dim" in keywords else _extremes(arguments)
        flags = behaviour.SEVERAL_BY_FLAG.get(last)
        if flags and any(keywords.get(flag, NO) is not NO for flag in flags):
            return TENSORS
        if last in behaviour.SHAPE_RESULTS:
            return SHAPE
        if last in behaviour.COMPUTED_RESULTS:
            return COMPUTED
        if last == "numpy":
            return ARRAY
        if last in behaviour.PLAIN_RESULTS or last.startswith(behaviour.PLAIN_BEGINNINGS):
            return PLAIN
        if last in behaviour.RAGGED_RESULTS:
            return RAGGED
        return VIEW if last in behaviour.VIEWS else TENSOR


def _of_module_without_tensors(name: str, kind: str) -> Value:
    if name in behaviour.SEVERAL_FUNCTIONS:
        return TENSORS
    if name.endswith("all_gather_object"):
        return TENSOR
    return PLAIN if kind == "f" else None


def _extremes(arguments: list[Value]) -> Value:
    """max and min: of one tensor, or of two, a tensor; with a dimension values and indices."""
    if len(arguments) < 2 or isinstance(arguments[1], Tensor):
        return TENSOR
    return TENSORS if isinstance(arguments[1], Plain) else None


def _einops_kind(name: str) -> str:
    if name in ("einops", "einops.layers", "einops.layers.torch"):
        return "m"
    return "M" if name.startswith("einops.layers") else "f"


def _einops_result(last: str, arguments: list[Value]) -> Value:
    """Of a tensor a tensor; of an array an array, about which nothing is said."""
    if last in ("parse_shape", "asnumpy"):
        return PLAIN
    if not arguments or not isinstance(arguments[0], Tensor) or last == "pack":
        return None
    return TENSORS if last == "unpack" else TENSOR


def _vision_kind(name: str) -> str:
    last = name.rpartition(".")[2]
    if name.startswith(("torchvision.models", "torchvision.ops")) and last[:1].isupper():
        return "M"
    return "c" if last[:1].isupper() else "f"


def module_result(member: str) -> Value:
    """What a method of torch's nn.Module returns."""
    if member in ("parameters", "buffers"):
        return TENSORS
    if member in ("named_parameters", "named_buffers"):
        return Items(Items(None, (PLAIN, TENSOR)))
    if member in ("modules", "children"):
        return Items(ANY_MODULE)
    if member in ("named_modules", "named_children"):
        return Items(Items(None, (PLAIN, ANY_MODULE)))
    if member in ("get_parameter", "get_buffer"):
        return TENSOR
    if member == "state_dict":
        return Mapping(TENSOR)
    return ANY_MODULE if member == "get_submodule" else PLAIN


@lru_cache(maxsize=1)
def torch_names() -> TorchNames:
    """The table that ships with isograd."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    return TorchNames(table, table["members"])

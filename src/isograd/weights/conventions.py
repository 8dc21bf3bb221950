"""The names and layouts of one framework turned into those of the other, without its network.

The table is the migration guide's, checked against what MindSpore 2.10's `nn` layers are called:
a norm's weight and bias are gamma and beta in MindSpore, its statistics moving_mean and
moving_variance (mean and variance where the norm is the whole network), those of BatchNorm3d lie in
its bn2d; an embedding's weight is embedding_table, a PReLU's is w; a one-dimensional convolution
keeps an axis of 1; a transformer layer's linear1 is dense1; num_batches_tracked does not exist.
`mindspore.mint.nn` keeps torch's names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from isograd.checkpoints.base import TensorInfo
from isograd.pairing.conventions import ALONE_BY_CONVENTION, NORMS
from isograd.pairing.transforms import Identity, Reshape, Transform
from isograd.weights.model import Dropped, Move, Plan
from isograd.weights.structure import kinds_of, split_name

_STATISTICS = {"running_mean": "moving_mean", "running_var": "moving_variance"}
_NORM = {"weight": "gamma", "bias": "beta", **_STATISTICS}
_ALONE = {**_NORM, "running_mean": "mean", "running_var": "variance"}
_BACK = {there: here for here, there in (*_ALONE.items(), *_NORM.items())}
_FEED_FORWARD = {"linear1": "dense1", "linear2": "dense2"}
#: MindSpore's BatchNorm3d keeps its state in a BatchNorm2d of this name.
_INNER = "bn2d"
#: Kinds that a file does not tell from others, and whose names or layouts depend on them.
_GUESSED = ("Embedding", "RMSNorm", "PReLU", "BatchNorm3d", "Conv1d", "ConvTranspose1d")
#: torch's parametrisations, which MindSpore does not have.
_PARAMETRISED = ("weight_g", "weight_v", "weight_orig", "original0", "original1")


def plan_by_convention(infos: Iterable[TensorInfo], source: str, target: str) -> Plan:
    """Plan every tensor; source, target: `torch` or `mindspore`."""
    found = list(infos)
    if source == target:
        return Plan(tuple(Move((info.name,), (info.name,)) for info in found))
    make = _ToMindSpore(found) if target == "mindspore" else _ToTorch(found)
    moves, dropped = [], []
    for info in found:
        if split_name(info.name)[1] in ALONE_BY_CONVENTION and target == "mindspore":
            dropped.append(Dropped(info.name, "MindSpore's norms do not count their batches"))
            continue
        name, transform = make.place(info)
        is_same = name == info.name and isinstance(transform, Identity)
        moves.append(Move((info.name,), (name,), transform, "name" if is_same else "convention"))
    return Plan(tuple(moves), tuple(dropped), notes=tuple(make.notes))


class _ToMindSpore:
    """torch's names as MindSpore's `nn` has them."""

    def __init__(self, infos: list[TensorInfo]) -> None:
        self._kinds = kinds_of(infos)
        self._modules = _feed_forwards(self._kinds, _FEED_FORWARD)
        self.notes = [
            f"{info.tied_to} and {info.name} are one matrix, and neither is taken for an "
            "Embedding, whose weight is called embedding_table; --into tells"
            for info in infos
            if info.tied_to is not None and self._are_linear(info.tied_to, info.name)
        ]

    def _are_linear(self, *names: str) -> bool:
        return all(
            attribute == "weight" and self._kinds.get(module) == "Linear"
            for module, attribute in map(split_name, names)
        )

    def place(self, info: TensorInfo) -> tuple[str, Transform]:
        module, attribute = split_name(info.name)
        kind = self._kinds[module]
        transform: Transform = Identity()
        name = attribute
        if kind in NORMS:
            name = (_NORM if module else _ALONE).get(attribute, attribute)
        elif attribute == "weight" and kind == "Embedding":
            name = "embedding_table"
        elif attribute == "weight" and kind == "PReLU":
            name = "w" if module else "a"
        elif attribute == "weight" and kind in ("Conv1d", "ConvTranspose1d"):
            transform = Reshape(info.shape, (*info.shape[:2], 1, info.shape[2]))
        if attribute == "weight" and kind in _GUESSED:
            self.notes.append(f"{module or 'the network'} is taken for {_article(kind)}")
        if attribute in _PARAMETRISED:
            self.notes.append(
                f"{info.name} is a parametrisation of torch's, which MindSpore has not: fold it "
                "into the weight before saving, or name the network with --into"
            )
        module = self._modules.get(module, module)
        if kind == "BatchNorm3d":
            module = f"{module}.{_INNER}" if module else _INNER
        return f"{module}.{name}" if module else name, transform


class _ToTorch:
    """MindSpore's names as torch has them."""

    def __init__(self, infos: list[TensorInfo]) -> None:
        self._kinds = kinds_of(infos)
        back = {there: here for here, there in _FEED_FORWARD.items()}
        self._modules = _feed_forwards(self._kinds, back)
        self._inner = _inner_norms(self._kinds)
        kernels = [i for i in infos if split_name(i.name)[1] == "weight" and len(i.shape) == 4]
        flat = [info for info in kernels if info.shape[2] == 1]
        is_one_dimensional = flat == kernels and any(info.shape[3] > 1 for info in flat)
        self._flat = {
            info.name
            for info in flat
            if is_one_dimensional or "1d" in split_name(info.name)[0].rpartition(".")[2].lower()
        }
        self.notes = [
            f"{split_name(name)[0] or 'the network'} is taken for a Conv1d" for name in self._flat
        ]
        doubtful = [i.name for i in flat if i.name not in self._flat and i.shape[3] > 1]
        if doubtful:
            self.notes.append(
                f"{len(doubtful):,} kernels of height 1, such as {doubtful[0]}, are kept for "
                "Conv2d; --into tells a Conv1d"
            )

    def place(self, info: TensorInfo) -> tuple[str, Transform]:
        module, attribute = split_name(info.name)
        kind = self._kinds[module]
        transform: Transform = Identity()
        name = attribute
        if kind in NORMS:
            name = _BACK.get(attribute, attribute)
        elif attribute == "embedding_table" or (kind == "PReLU" and attribute in ("w", "a")):
            name = "weight"
        elif info.name in self._flat:
            transform = Reshape(info.shape, (*info.shape[:2], info.shape[3]))
        if kind == "RMSNorm" and attribute == "gamma":
            self.notes.append(f"{module or 'the network'} is taken for {_article(kind)}")
        module = self._modules.get(self._inner.get(module, module), self._inner.get(module, module))
        return f"{module}.{name}" if module else name, transform


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "AEIR" else f"a {kind}"


def _feed_forwards(kinds: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The two linear layers beside the `self_attn` of a transformer layer, by their other names."""
    found = {}
    for module in kinds:
        parent, _, last = module.rpartition(".")
        beside = f"{parent}.self_attn" if parent else "self_attn"
        if last in names and beside in kinds:
            found[module] = f"{parent}.{names[last]}" if parent else names[last]
    return found


def _inner_norms(kinds: Mapping[str, str]) -> dict[str, str]:
    """Modules called bn2d that are all that their parent holds, with the parent."""
    found = {}
    for module, kind in kinds.items():
        parent, _, last = module.rpartition(".")
        if last != _INNER or kind not in NORMS or parent in kinds:
            continue
        start = f"{parent}." if parent else ""
        if not any(name != module and name.startswith(start) for name in kinds):
            found[module] = parent
    return found

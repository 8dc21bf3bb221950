"""A network as far as the names and shapes of its checkpoint tell.

Nothing but a file is known, so the kind of a layer is guessed: statistics make a batch norm, a
kernel of four dimensions a convolution, and so on.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping

from isograd.checkpoints.base import TensorInfo
from isograd.frameworks.base import ModuleInfo, ParameterInfo, Structure
from isograd.pairing.conventions import canonical_kind

#: Names of what layers keep beside their parameters and do not train.
STATISTICS = frozenset(
    {"running_mean", "running_var", "num_batches_tracked", "moving_mean", "moving_variance"}
)
#: Names that only one framework's own layers give; gamma and beta are also people's.
_MINDSPORE = frozenset({"moving_mean", "moving_variance", "embedding_table"})
_TORCH = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_NORM_WORD = re.compile(r"(norm|(^|[._])ln|(^|[._])bn)[_\d]*|(^|[._])ln_", re.IGNORECASE)
_EMBEDDING_WORD = re.compile(r"emb|wte|wpe|relative_attention_bias", re.IGNORECASE)
_ACTIVATION_WORD = re.compile(r"prelu|act", re.IGNORECASE)
_KERNELS = {2: "Linear", 3: "Conv1d", 4: "Conv2d", 5: "Conv3d"}

Shapes = Mapping[str, tuple[int, ...]]


def split_name(name: str) -> tuple[str, str]:
    """The module and the attribute of a dotted name."""
    module, _, attribute = name.rpartition(".")
    return module, attribute


def framework_of(names: Iterable[str], kind: str = "") -> str:
    """The framework whose names these are: `mindspore` or `torch`.

    The names that only one of them uses decide, then the kind of the file, then norms.
    """
    attributes: dict[str, set[str]] = {}
    for name in names:
        module, attribute = split_name(name)
        attributes.setdefault(module, set()).add(attribute)
    used = set().union(*attributes.values())
    if used & _MINDSPORE:
        return "mindspore"
    if used & _TORCH or kind.startswith("torch"):
        return "torch"
    if kind.startswith("MindSpore"):
        return "mindspore"
    return "mindspore" if any({"gamma", "beta"} <= a for a in attributes.values()) else "torch"


def kinds_of(infos: Iterable[TensorInfo]) -> dict[str, str]:
    """The guessed class, by torch's names, of each module that holds tensors."""
    modules: dict[str, dict[str, tuple[int, ...]]] = {}
    for info in infos:
        module, attribute = split_name(info.name)
        modules.setdefault(module, {})[attribute] = info.shape
    kinds = {module: _kind(module, shapes) for module, shapes in modules.items()}
    kernels = _Kernels(modules)
    for place, (module, shapes) in enumerate(modules.items()):
        if kinds[module] == "BatchNorm2d" and kernels.dimensions_near(place, shapes) == 5:
            kinds[module] = "BatchNorm3d"
    return kinds


def structure_of(
    infos: Iterable[TensorInfo], kind: str = "", known: Structure | None = None
) -> Structure:
    """The network that a checkpoint suggests.

    known: a network whose modules of the same names are of the same kinds.
    """
    found = list(infos)
    framework = framework_of((info.name for info in found), kind)
    kinds = kinds_of(found)
    for there in known.modules if known is not None else ():
        if there.library and there.name in kinds:
            kinds[there.name] = canonical_kind(there.kind)
    names = {""}
    for module in kinds:
        parts = module.split(".")
        names.update(".".join(parts[: end + 1]) for end in range(len(parts)))
    modules = tuple(
        ModuleInfo(name, kinds.get(name, "Module"), bool(kinds.get(name)))
        for name in sorted(names, key=lambda name: (name.count("."), name))
    )
    return Structure(framework, modules, tuple(_parameter(info, framework) for info in found))


def _parameter(info: TensorInfo, framework: str) -> ParameterInfo:
    module, attribute = split_name(info.name)
    is_statistic = attribute in STATISTICS
    return ParameterInfo(
        info.name,
        module,
        attribute,
        info.shape,
        info.dtype,
        not is_statistic if info.trainable is None else info.trainable,
        is_statistic and framework == "torch",
        info.tied_to,
    )


def _kind(module: str, shapes: Shapes) -> str:
    if shapes.keys() & {"running_mean", "moving_mean"} or {"mean", "variance", "gamma"} <= (
        shapes.keys()
    ):
        return "BatchNorm2d"
    if "embedding_table" in shapes:
        return "Embedding"
    if "gamma" in shapes:
        return "LayerNorm" if "beta" in shapes else "RMSNorm"
    recurrent = next((name for name in shapes if name.startswith("weight_ih")), None)
    if recurrent is not None:
        return _recurrent_kind(shapes, recurrent)
    weight = shapes.get("weight")
    if weight is None:
        only = shapes.get("w", shapes.get("a", ())) if len(shapes) == 1 else ()
        return "PReLU" if len(only) == 1 else ""
    if len(weight) == 1:
        return _vector_kind(module, shapes)
    if len(weight) == 2 and "bias" not in shapes and _EMBEDDING_WORD.search(module):
        return "Embedding"
    kernel = _KERNELS.get(len(weight), "")
    bias = shapes.get("bias", ())
    if kernel.startswith("Conv") and len(bias) == 1 and bias[0] == weight[1] != weight[0]:
        return kernel.replace("Conv", "ConvTranspose")
    return kernel


def _vector_kind(module: str, shapes: Shapes) -> str:
    if shapes.get("bias") == shapes["weight"]:
        return "LayerNorm"
    last = module.rpartition(".")[2]
    if _NORM_WORD.search(last):
        return "RMSNorm"
    if shapes["weight"] == (1,) or _ACTIVATION_WORD.search(last) or last.isdigit():
        return "PReLU"
    return ""


class _Kernels:
    """The weights of two and more dimensions by their channels, in the order of the file."""

    def __init__(self, modules: Mapping[str, Shapes]) -> None:
        self._by_output: dict[int, list[tuple[int, int]]] = {}
        self._by_input: dict[int, list[tuple[int, int]]] = {}
        for place, shapes in enumerate(modules.values()):
            weight = shapes.get("weight", ())
            if len(weight) > 1:
                self._by_output.setdefault(weight[0], []).append((place, len(weight)))
                self._by_input.setdefault(weight[1], []).append((place, len(weight)))

    def dimensions_near(self, place: int, shapes: Shapes) -> int:
        """Those of the nearest weight before a norm that makes its channels, or after that takes
        them; 0 where there is none."""
        channels = next((shape[0] for shape in shapes.values() if shape), 0)
        made = self._by_output.get(channels, [])
        before = bisect.bisect_left(made, (place, 0))
        if before:
            return made[before - 1][1]
        taken = self._by_input.get(channels, [])
        after = bisect.bisect_left(taken, (place, 0))
        return taken[after][1] if after < len(taken) else 0


def _recurrent_kind(shapes: Shapes, recurrent: str) -> str:
    hidden = shapes.get(recurrent.replace("_ih", "_hh"))
    rows = shapes[recurrent][0] if shapes[recurrent] else 0
    if not hidden or len(hidden) != 2 or not hidden[1]:
        return ""
    return {4: "LSTM", 3: "GRU", 1: "RNN"}.get(rows // hidden[1], "")

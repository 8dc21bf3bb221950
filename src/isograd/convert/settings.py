"""What holds for every file of a conversion."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from isograd.convert.analysis.holdings import Holdings
from isograd.convert.analysis.layers import Layers
from isograd.convert.analysis.starting import Starting
from isograd.scan.values import ClassInfo


@dataclass(frozen=True)
class Settings:
    """What holds for every file of a conversion.

    target: "ops" (nn and ops, which run on CPU, GPU and Ascend) or "mint".
    layers: which of torch's layers are the runtime's, and why.
    layer_attributes: what can be read of layers, by torch's names.
    mixed: classes of the project that are no modules themselves and are bases of some.
    with_modes: classes of the project from which others with a `train` of their own are derived.
    words: texts of the project that may name what it looks up in torch; empty where it looks
    nothing up.
    has_complex: whether the project makes complex numbers.
    works_in_place: whether it has layers with inplace=True.
    starting: who else makes its modules, and so in which mode they start.
    compiles_steps: whether its training loops call compiled steps, so that nothing of those
    records gradients.
    records_gradients: whether anything of the project may ask for recorded gradients.
    list_fields: fields of named tuples to which the project gives a list.
    reads_states: whether it may read the names or the order of what a `state_dict()` holds.
    buffers: those that its classes register.
    makes_doubles: whether its networks may be of float64, which not all of MindSpore's take.
    holdings: which layers and modules its attributes hold.
    computes_in_modes: whether a `train` or `eval` of the project may compute something.
    infinite: its functions of which a result may be infinite.
    compiles_evaluation: whether what evaluates the networks of its steps may be compiled, too.
    asked_modules: its modules that are asked for names by a text.
    computed: the names of functions that its compiled steps run.
    undefined: its functions of which a result may be NaN.
    """

    target: str = "ops"
    layers: Layers = field(default_factory=Layers)
    layer_attributes: frozenset[str] = frozenset()
    mixed: frozenset[ClassInfo] = frozenset()
    words: frozenset[str] = frozenset()
    has_complex: bool = False
    works_in_place: bool = False
    starting: Starting = field(default_factory=Starting)
    compiles_steps: bool = False
    records_gradients: bool = True
    with_modes: frozenset[ClassInfo] = frozenset()
    list_fields: frozenset[str] = frozenset()
    reads_states: bool = False
    buffers: frozenset[tuple[str, str]] = frozenset()
    makes_doubles: bool = False
    holdings: Holdings = field(default_factory=Holdings)
    computes_in_modes: bool = False
    infinite: frozenset[str] = frozenset()
    compiles_evaluation: bool = False
    asked_modules: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    undefined: frozenset[str] = frozenset()

    def is_shaped(self, api: str) -> bool:
        """Whether the runtime's class is written for one of torch's."""
        return self.layers.is_runtime(api)


@dataclass(frozen=True)
class LayersInPlace:
    """Attributes of a class that hold layers made with `inplace=True`.

    whole: the layers themselves.  first: Sequentials that begin with one, by its API.  written:
    calls that make layers which write into their input themselves in the port.
    """

    whole: frozenset[str] = frozenset()
    written: frozenset[ast.AST] = frozenset()
    first: dict[str, str] = field(default_factory=dict)

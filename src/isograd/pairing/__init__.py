"""Pairing: which parameter, module and call of the port is which of the reference."""

from isograd.pairing.calls import pair_calls
from isograd.pairing.modules import pair_modules
from isograd.pairing.parameters import pair_parameters
from isograd.pairing.results import (
    ModulePair,
    ModulePairing,
    ParameterPair,
    ParameterPairing,
    Values,
)
from isograd.pairing.transforms import (
    Chain,
    Concatenate,
    Identity,
    Reshape,
    Split,
    Transform,
    Transpose,
)

__all__ = [
    "Chain",
    "Concatenate",
    "Identity",
    "ModulePair",
    "ModulePairing",
    "ParameterPair",
    "ParameterPairing",
    "Reshape",
    "Split",
    "Transform",
    "Transpose",
    "Values",
    "pair_calls",
    "pair_modules",
    "pair_parameters",
]

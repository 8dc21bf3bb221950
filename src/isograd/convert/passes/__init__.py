"""The passes of a conversion: small units that each write one kind of construct.

A pass says which kinds of nodes it looks at, and is shown every such node of a file, inner nodes
before those around them.  It looks at the node through `FileEdit` and writes:

    class Example:
        kinds = (ast.Call,)                      # node classes
        examples = (Example("…", "…"),)          # its tests and docs/convert-rules.md
        counterexamples = (Example("…", "…"),)

        def convert(self, node, file):           # True: no later pass needs to see this node
            if file.api_of_call(node) != "torch.example":
                return False
            file.replace(node, file.spelled(f"ops.example({file.source(node.args[0])})"))
            return True

`file.source(node)` is the node's text with what inner passes wrote, so nested edits compose.
`file.use(node)` says which API of torch a name or attribute names, by import or as a member of a
value; `file.name("nn.Cell")` spells a name of MindSpore's and notes the import that it needs, and
`file.name("composites.conv2d")` one of the generated module.  What cannot be converted is reported
with `file.finding(node, code, message, advice)`, which also writes the comment; nothing is dropped
silently.  For a node the passes run in the order of `PASSES`; the first that returns True ends it.
Names of torch that no pass has written become `unconverted("torch.…")` with a finding.
"""

from __future__ import annotations

import ast
from typing import Protocol

from isograd.convert.file import FileEdit
from isograd.convert.passes.augmented import AugmentedAssignments
from isograd.convert.passes.bounds import Bounds
from isograd.convert.passes.buffers import Buffers
from isograd.convert.passes.building import Building
from isograd.convert.passes.calls import Calls
from isograd.convert.passes.casts import Casts
from isograd.convert.passes.complex_numbers import ComplexNumbers
from isograd.convert.passes.data_aliases import WrittenData
from isograd.convert.passes.decorators import Decorators
from isograd.convert.passes.device_moves import DeviceMoves
from isograd.convert.passes.example import Example
from isograd.convert.passes.formats import Formats
from isograd.convert.passes.fresh_modules import FreshModules
from isograd.convert.passes.imports_by_name import ImportsByName
from isograd.convert.passes.indexed_copies import TakenByCopy
from isograd.convert.passes.inplace import InPlace
from isograd.convert.passes.integer_arguments import JoinedParts, RealFunctions
from isograd.convert.passes.language import Constants, Questions, Settings
from isograd.convert.passes.late_children import LateChildren
from isograd.convert.passes.layer_attributes import LayerAttributes
from isograd.convert.passes.layer_settings import LayerSettings
from isograd.convert.passes.layers_in_place import InPlaceLayers
from isograd.convert.passes.leading_axes import LeadingAxes
from isograd.convert.passes.literal_tensors import LiteralTensors
from isograd.convert.passes.members import Members
from isograd.convert.passes.module_contents import ModuleContents
from isograd.convert.passes.module_loops import ModuleLoops
from isograd.convert.passes.modules import Forward
from isograd.convert.passes.named_results import NamedResults
from isograd.convert.passes.operators import BitwiseOperators
from isograd.convert.passes.precision import Precision
from isograd.convert.passes.references import References
from isograd.convert.passes.reversed_lists import ReversedLists
from isograd.convert.passes.shapes import LegacySizes, Shapes
from isograd.convert.passes.starting_mode import StartingMode
from isograd.convert.passes.starting_values import StartingValues
from isograd.convert.passes.steps import StepNames
from isograd.convert.passes.stores import Stores
from isograd.convert.passes.subscripts import NumbersBesidePositions, NumpyIndices, Subscripts
from isograd.convert.passes.sums import SumsOfSelections
from isograd.convert.passes.truncated_logarithms import TruncatedLogarithms
from isograd.convert.passes.uncertain import SecondDerivatives, Uncertain
from isograd.convert.passes.unknown_modules import UnknownModules
from isograd.convert.passes.writes import Leaves, Writes


class Pass(Protocol):
    """One kind of construct."""

    @property
    def kinds(self) -> tuple[type[ast.AST], ...]:
        """The classes of nodes that it looks at."""

    @property
    def examples(self) -> tuple[Example, ...]:
        """Texts that it changes, or of which it says something."""

    @property
    def counterexamples(self) -> tuple[Example, ...]:
        """Texts that are near to these, and of which it says and changes nothing."""

    def convert(self, node: ast.AST, file: FileEdit) -> bool:
        """Write the node if it is of this kind; True where no later pass needs to see it."""


PASSES: tuple[Pass, ...] = (
    StepNames(),
    Settings(),
    Decorators(),
    Buffers(),
    Forward(),
    Questions(),
    LayerSettings(),
    LayerAttributes(),
    ModuleLoops(),
    ReversedLists(),
    Precision(),
    ModuleContents(),
    FreshModules(),
    UnknownModules(),
    WrittenData(),
    TakenByCopy(),
    Bounds(),
    InPlace(),
    Writes(),
    Leaves(),
    AugmentedAssignments(),
    Stores(),
    LeadingAxes(),
    InPlaceLayers(),
    SecondDerivatives(),
    ComplexNumbers(),
    Casts(),
    DeviceMoves(),
    LiteralTensors(),
    TruncatedLogarithms(),
    RealFunctions(),
    JoinedParts(),
    LegacySizes(),
    Shapes(),
    Uncertain(),
    SumsOfSelections(),
    StartingValues(),
    Calls(),
    Building(),
    LateChildren(),
    StartingMode(),
    NamedResults(),
    Members(),
    References(),
    NumbersBesidePositions(),
    NumpyIndices(),
    Subscripts(),
    BitwiseOperators(),
    Constants(),
    ImportsByName(),
    Formats(),
)


def passes_by_kind(*, is_early: bool) -> dict[type, list[Pass]]:
    """The passes for each kind of node, in their order; the early ones see a file before others."""
    found: dict[type, list[Pass]] = {}
    for item in PASSES:
        if getattr(item, "is_early", False) is is_early:
            for kind in item.kinds:
                found.setdefault(kind, []).append(item)
    return found

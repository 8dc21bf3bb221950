"""What the reading of one file leaves for its conversion."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from isograd.convert.analysis.attribute_sets import AttributeSet
from isograd.convert.analysis.class_questions import Questions
from isograd.convert.analysis.handed_in import Constructor
from isograd.convert.analysis.starting import Elsewhere
from isograd.convert.analysis.terms import Holding
from isograd.convert.places import Place, place
from isograd.scan.values import ClassInfo, Tensor, Value


@dataclass(frozen=True)
class Member:
    """`receiver.name`: an API of torch's Tensor, Module or optimizers.

    is_sure: whether what the receiver is is known, rather than guessed from the name.
    """

    api: str
    is_sure: bool
    owner: Value = None


@dataclass
class Facts:
    """What the reading of one file leaves for its conversion; no part of its tree.

    values: of targets of `+=`, of what functions of torch change, of set attributes. operands: of
    `~x`, `x & y`, `x + y`, `x * y`. owners: of `x.forward`, `getattr(x, …)` and its like.
    unknown: attributes of unknown values.
    selected: calls of torch on `x[mask]`. of_masks: such of a comparison.
    selections: whether i of `x[i]`, a tensor, is a mask.
    indexed: `x[i]` where x is a tensor. by_position: `x[i]` where a tensor of positions may stand
    alone. lists: lists of modules that are indexed. picked: `x[i]` where i is a tensor, and x none
    that is known. bounded: `x.clamp(0, y)` of a tensor and what may be none. apis: all of torch
    that the file names. named_calls: layers called by names of arguments; "" where not known.
    made_otherwise: layers that arguments by name make other than MindSpore's own. reparametrized:
    layers whose parameters a function of torch replaces; "" where not known. compared: classes of
    torch that stand in a comparison. layer_owners: what `x.weight` and other attributes of layers
    are read of, or set. read_of_layers: such attributes, by the class of the layer. built: calls
    that make a module of the project's, with its class; None for several. made: names of these
    classes. called: methods called on anything but self. elsewhere: what the file takes of others.
    looks_up: whether it asks for names that it computes.
    asked_modules: the project's modules that it asks for such names.
    in_inference: classes whose constructor says `self.eval()`. sets: attributes of layers, and of
    what may be one, that are set.
    sets_of_modules: where attributes of what may be a module are set. sets_of_children: calls of
    `setattr` that may give a module another, and whether either is known to be a module.
    buffers: as `buffers_of`. modes_read: as `analysis.mode_reads`.
    has_modes: whether anything is otherwise in training. unfreezes: whether something says what
    learns, other than that it does not. private: where modules' own dictionaries of parameters are
    named. reads_private: whether they are more than read there. makes_complex: whether something of
    torch's makes complex numbers. works_in_place: whether a layer is made so. asking: what it asks
    of classes. calls: names called, and whether an argument may be a class. no_modules: arguments
    that neither are nor hold modules. constructors: of the classes of modules. leaves_training:
    whether something may set a module to inference. makes_doubles: as `DOUBLES`. holding: what
    attributes and functions hold, as far as the file says it.
    computes_in_modes: whether a method `train` or `eval` may compute something.
    sets_own_modes: whether one does not leave all of a module in the mode that it is given.
    tensors_given: arguments of torch's, and elements of such, that are tensors. repeated: tensors
    that say how often a list is repeated. operators: functions called that are `operator.iadd` and
    its like, with the method of tensors that does the same; empty of what may be no tensor.
    made_of_tensors: what operators make of them.
    """

    members: dict[Place, Member] = field(default_factory=dict)
    classes: dict[Place, ClassInfo] = field(default_factory=dict)
    values: dict[Place, Value] = field(default_factory=dict)
    operands: dict[Place, tuple[Value, ...]] = field(default_factory=dict)
    owners: dict[Place, Value] = field(default_factory=dict)
    unknown: set[Place] = field(default_factory=set)
    selected: set[Place] = field(default_factory=set)
    of_masks: set[Place] = field(default_factory=set)
    selections: dict[Place, bool] = field(default_factory=dict)
    indexed: set[Place] = field(default_factory=set)
    by_position: set[Place] = field(default_factory=set)
    lists: set[Place] = field(default_factory=set)
    picked: set[Place] = field(default_factory=set)
    bounded: set[Place] = field(default_factory=set)
    apis: frozenset[str] = frozenset()
    named_calls: set[str] = field(default_factory=set)
    made_otherwise: set[str] = field(default_factory=set)
    reparametrized: set[str] = field(default_factory=set)
    compared: frozenset[str] = frozenset()
    layer_owners: dict[Place, Value] = field(default_factory=dict)
    read_of_layers: set[tuple[str, str]] = field(default_factory=set)
    built: dict[Place, ClassInfo | None] = field(default_factory=dict)
    private: set[Place] = field(default_factory=set)
    reads_private: bool = False
    sets: dict[Place, AttributeSet] = field(default_factory=dict)
    sets_of_modules: set[Place] = field(default_factory=set)
    sets_of_children: dict[Place, bool] = field(default_factory=dict)
    buffers: frozenset[tuple[str, str]] = frozenset()
    has_modes: bool = False
    modes_read: frozenset[str] = frozenset()
    unfreezes: bool = False
    made: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    looks_up: bool = False
    asked_modules: set[str] = field(default_factory=set)
    in_inference: set[str] = field(default_factory=set)
    makes_complex: bool = False
    works_in_place: bool = False
    asking: Questions = field(default_factory=Questions)
    calls: set[tuple[str, bool]] = field(default_factory=set)
    no_modules: set[Place] = field(default_factory=set)
    constructors: Mapping[ClassInfo, Constructor] = field(default_factory=dict)
    leaves_training: bool = False
    makes_doubles: bool = False
    holding: Holding = field(default_factory=Holding)
    computes_in_modes: bool = False
    sets_own_modes: bool = False
    tensors_given: set[Place] = field(default_factory=set)
    repeated: set[Place] = field(default_factory=set)
    operators: dict[Place, str] = field(default_factory=dict)
    made_of_tensors: set[Place] = field(default_factory=set)

    def is_tensor(self, target: ast.AST) -> bool:
        """Whether a side of a `+=`, or a set attribute, is known to be a tensor."""
        return isinstance(self.values.get(place(target)), Tensor)

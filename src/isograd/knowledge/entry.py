"""What is known about one API of torch: frozen values, no input or output."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

#: In an entry's attributes: MindSpore's layer has nothing of it; and the runtime's neither.
UNHELD, UNKNOWN = "!", "?"


class Status(str, Enum):
    """What MindSpore has for an API; `unknown` is said of a use, never of an entry."""

    SUPPORTED = "supported"
    DIFFERS = "differs"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Applicability(str, Enum):
    """Who may apply a rewrite: a tool without asking, a tool with a look after it, a person."""

    SAFE = "safe"
    LOOK = "needs a look"
    HAND = "by hand"


class Way(str, Enum):
    """The migration guide's ways out of a missing API."""

    REPLACE = "equivalent replacement"
    COMPOSE = "combination of existing operators"
    CUSTOM = "custom operator"
    ASK = "ask the community"


@dataclass(frozen=True)
class Verified:
    """What an execution on both frameworks showed, with the versions and the device of it.

    forward, gradient: whether all examples agreed; None where it was not executed or has no
    gradient.  detail: the first disagreement in words.  compiled: what `jit` and GRAPH_MODE make of
    it: "same", "refused (why)", "differs"; empty where that was not executed.
    """

    torch: str
    mindspore: str
    device: str
    forward: bool | None
    gradient: bool | None = None
    detail: str = ""
    compiled: str = ""


@dataclass(frozen=True)
class Example:
    """A call of torch whose rewrite is executed beside it.

    code: an expression, or statements with a last `return`, over the names of `inputs`.
    inputs: expressions in numpy by name, drawn anew for each seed (`normal(2, 3)`,
    `integers(0, 5, (4,))`).
    port: MindSpore's code by hand, where the entry's rewrite does not make it.
    compare: "values"; "distribution" for what is random; "shape" for what is not initialised.
    ties: whether the rewrite agrees also of equal numbers, zeros and numbers at the borders of a
    definition.
    """

    code: str
    inputs: tuple[tuple[str, str], ...] = ()
    port: str = ""
    gradient: bool = True
    compare: str = "values"
    ties: bool = True


@dataclass(frozen=True)
class Entry:
    """One API of torch.

    api: its canonical public name ("torch.nn.Conv2d", "torch.Tensor.view", "torch.cat").
    aliases: other names of the same thing ("torch.concat").
    signature: torch's parameters, as in a `def`, by which a call's arguments are bound.
    target: MindSpore's nn, ops, Tensor or experimental.optim name; mint: the mint name.
    rewrite: the MindSpore expression with torch's arguments in braces; empty where a person has to
    write it.  others: further templates for calls whose arguments the first cannot place (another
    overload), tried in order.  For an in-place method ("torch.Tensor.add_") the template is the new
    value, which a port assigns to the receiver.  arguments: (torch's name, MindSpore's name or ""
    where it is dropped on purpose).
    value: what replaces the API where it is named without a call: a class or function that takes
    torch's arguments, as a value (`norm_layer=nn.BatchNorm2d`), in `partial` and as a base class.
    A class has torch's attributes and initial values and starts in training.
    factory: what makes MindSpore's own layer by torch's arguments: a class of MindSpore that takes
    them as they are, or a function of `runtime/cells.py` that a port holds in its file.
    base: the class from which the port of a class derives that derives from this one: MindSpore's
    layer by torch's arguments, with MindSpore's names; empty where that is `value`.
    attributes: (torch's name, MindSpore's) of what can be read of that layer: "" where
    `layer_size` or `layer_attribute` finds it, "= True" for what such a layer does not hold and
    means in any case, "!" for what the runtime's class alone holds, which the layer is then, and
    "?" for what none holds, which is reported.
    settings: (torch's name, function of the runtime) of what can be set of that layer after it is
    made; no function where it reads the setting at each call under torch's name.
    instance: the class that an isinstance or an annotation names, where it is not `value`: what
    both `value` and the classes of the templates derive from.
    integers: torch's parameters that are one integer; with "*" before it one or several, with "="
    behind it where it is given by its name alone.
    difference: the semantic difference in one sentence.
    hazard: code of the hazard that each use raises, or empty.
    way, advice: for what is missing, how to go on, with code in `advice`.
    source: where the claim comes from.
    examples: calls that are executed beside torch; empty where they were not asked for.
    is_random: whether a call draws: its hazard or an example's comparison says so.
    """

    api: str
    status: Status
    target: str = ""
    mint: str = ""
    aliases: tuple[str, ...] = ()
    signature: str = ""
    rewrite: str = ""
    others: tuple[str, ...] = ()
    value: str = ""
    factory: str = ""
    base: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    instance: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    integers: tuple[str, ...] = ()
    difference: str = ""
    applicability: Applicability = Applicability.HAND
    hazard: str = ""
    way: Way | None = None
    advice: str = ""
    source: str = ""
    examples: tuple[Example, ...] = ()
    is_random: bool = False
    verified: Verified | None = None

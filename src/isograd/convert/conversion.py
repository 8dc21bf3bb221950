"""What a conversion knows while it works: its options, and what its files said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from isograd.convert.analysis.layers import Layers
from isograd.convert.analysis.starting import Starting
from isograd.convert.facts import Facts
from isograd.convert.model import Finding
from isograd.convert.names import Index
from isograd.convert.reading import ReadFile
from isograd.convert.training.decision import Decision
from isograd.convert.walk import Files
from isograd.knowledge.store import Knowledge
from isograd.progress import Progress
from isograd.scan.project import ModuleIndex
from isograd.scan.selection import EVERYTHING, Selection
from isograd.scan.sources import Source


@dataclass
class Options:
    """How to convert.

    keep_texts: whether the report holds the references and the ports.
    selection: which files are carried over, and which findings are reported.
    eager: training loops stay as they are, though they could call compiled steps.
    """

    target: str = "ops"
    force: bool = False
    keep_texts: bool = False
    progress: Progress | None = None
    knowledge: Knowledge | None = None
    selection: Selection = EVERYTHING
    eager: bool = False


@dataclass
class Run:
    """A conversion at work."""

    root: Path
    base: Path
    files: Files
    options: Options
    knowledge: Knowledge
    index: ModuleIndex
    names: Index
    facts: dict[Path, Facts] = field(default_factory=dict)
    failed: dict[Path, Finding] = field(default_factory=dict)
    has_complex: bool = False
    makes_doubles: bool = False
    works_in_place: bool = False
    looks_up: bool = False
    #: Files whose trees are kept for the second reading, and how much text that is.
    kept: dict[Path, ReadFile] = field(default_factory=dict)
    kept_bytes: int = 0
    #: The compositions that each generated module holds, by its folder below the root.
    composites: dict[Path, set[str]] = field(default_factory=dict)
    #: Findings that comments or options ignore.
    suppressed: int = 0
    #: The texts that may name what the project looks up in torch.
    words: set[str] = field(default_factory=set)
    #: Fields of named tuples to which the project gives a list.
    list_fields: frozenset[str] = frozenset()
    #: Whether a file calls `state_dict`, and whether one may be read.
    has_states: bool = False
    reads_states: bool = False
    layers: Layers = field(default_factory=Layers)
    starting: Starting = field(default_factory=Starting)
    #: Files whose training loops are written anew, and what is said of loops that are not.
    training: Decision = field(default_factory=Decision)
    rewritten: dict[Path, Source] = field(default_factory=dict)

"""A report as a document: what text and HTML draw, whatever the verb.

A verb fills a `Document` in one function, `document(report)` in `VERB/document.py`.  The renderers
(`render_text`, `render_html`, `render_sarif`) know these classes and no verb::

    def document(report: RunReport) -> Document:
        return Document(
            title=f"isograd watch {report.name}",
            outcome=Outcome("unhealthy", "Unhealthy: the first NaN arose at step 40.", Tone.BAD),
            sections=(
                FindingList("Alerts", tuple(as_finding(alert) for alert in report.alerts)),
                Chart("Loss", ChartKind.LINE, Axis("step"), Axis("loss", is_log=True),
                      (Series("training", steps, losses),)),
                Table("Modules", (Column("module", is_code=True), Column("norm", is_number=True)),
                      rows),
            ),
        )

Everything here is plain text.  Renderers escape hidden characters and markup; a document never
holds either on purpose.  Numbers are given as numbers: columns and axes say their unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, TypeVar, overload

from isograd.findings import Finding, Rule

Raw = TypeVar("Raw")
Built = TypeVar("Built", covariant=True)


class Lazy(Sequence[Built]):
    """Entries that are built when they are drawn: of a hundred thousand findings, twenty."""

    def __init__(self, items: Sequence[Raw], build: Callable[[Raw], Built]) -> None:
        self._items: Sequence[Any] = items
        self._build = build

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Built: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Built]: ...
    def __getitem__(self, index: int | slice) -> Built | Sequence[Built]:
        if isinstance(index, slice):
            return [self._build(item) for item in self._items[index]]
        return self._build(self._items[index])


class Tone(str, Enum):
    """How a word, a cell or a line is coloured."""

    PLAIN = "plain"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    INFO = "info"
    FAINT = "faint"
    STRONG = "strong"


class Medium(str, Enum):
    """Where a section is drawn."""

    BOTH = "both"
    TEXT = "text"
    PAGE = "page"


class ChartKind(str, Enum):
    """How the series of a chart are drawn; bars stand side by side or on one another."""

    LINE = "line"
    POINTS = "points"
    BARS = "bars"
    STACKED_BARS = "stacked bars"


@dataclass(frozen=True)
class Outcome:
    """The answer: the verdict's word, and one sentence that says all."""

    word: str
    sentence: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Styled:
    """A cell or a line with a tone, a heat level (0 to 8) or a link to a section's anchor."""

    value: str | int | float
    tone: Tone = Tone.PLAIN
    level: int | None = None
    link: str = ""


Cell = str | int | float | bool | None | Styled


@dataclass(frozen=True)
class Section:
    """A part of a document; the classes below say of what.

    note: a caption below it.  anchor: by what links of cells find it.  is_folded: a page shows it
    closed.  more: how many entries the document leaves out; renderers add what they leave out.
    most: how many entries the text shows, unless all are asked for; 0 leaves the section out.
    """

    title: str
    _: KW_ONLY
    note: str = ""
    anchor: str = ""
    is_folded: bool = False
    medium: Medium = Medium.BOTH
    more: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Lines(Section):
    """Sentences or names, one a line."""

    lines: Sequence[str | Styled]


@dataclass(frozen=True)
class Facts(Section):
    """Names with what is known of each: versions, settings, thresholds."""

    pairs: Sequence[tuple[str, Cell]]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    format: Python's format specification of numbers (",d", ".3f", ".1%").  is_code: names and
    shapes, in a fixed width.  has_bar: a page draws each number as a bar, too.
    is_only_on_page: the text has no room for it.  is_cut: the text cuts it to one line.
    """

    name: str
    unit: str = ""
    is_number: bool = False
    format: str = ""
    is_code: bool = False
    has_bar: bool = False
    is_only_on_page: bool = False
    is_cut: bool = False


@dataclass(frozen=True)
class Table(Section):
    """Rows of cells; a page lets its reader sort and filter them."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Link:
    """A way on from a finding; address: a page of the site, or a section's anchor."""

    label: str
    address: str


@dataclass(frozen=True)
class FindingList(Section):
    """Findings, worst first; links: of each finding, where a page leads on from it."""

    findings: Sequence[Finding]
    links: Sequence[Sequence[Link]] = ()


@dataclass(frozen=True)
class Axis:
    """What an axis measures; categories name the positions 0, 1, … of bars."""

    label: str
    unit: str = ""
    is_log: bool = False
    categories: Sequence[str] = ()


@dataclass(frozen=True)
class Series:
    """One curve or one kind of bar; a value that is None or not finite is a gap.

    low, high: the band around y, where there is one.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


@dataclass(frozen=True)
class ChartMark:
    """A position that a chart points out, on the x axis or (is_level) on the y axis."""

    at: float
    label: str
    tone: Tone = Tone.WARNING
    is_level: bool = False


@dataclass(frozen=True)
class Chart(Section):
    """Series over common axes; a page draws small ones side by side."""

    kind: ChartKind
    x: Axis
    y: Axis
    series: Sequence[Series]
    marks: Sequence[ChartMark] = ()
    is_small: bool = False


@dataclass(frozen=True)
class CodeMark:
    """A place in code: `length` characters from column (both from 1), and what is said of it.

    column 0 marks no characters; text may be empty.  line 0 stands before the first line.
    """

    line: int
    column: int = 0
    length: int = 0
    tone: Tone = Tone.WARNING
    label: str = ""
    text: str = ""


@dataclass(frozen=True)
class Code(Section):
    """Source text with marks; with context, only so many lines around marks that have text.

    With an anchor, links find line 7 by the anchor and "-7".
    """

    text: str
    language: str = "python"
    marks: Sequence[CodeMark] = ()
    first_line: int = 1
    context: int | None = None


@dataclass(frozen=True)
class CodePair(Section):
    """Two versions of a text side by side: the changes with a few lines around each.

    marks stand at lines of the old text.
    """

    old: str
    new: str
    marks: Sequence[CodeMark] = ()
    context: int = 4


@dataclass(frozen=True)
class Chip:
    """A small measurement beside a name; level 0 to 8 colours it, None is grey."""

    label: str
    text: str
    level: int | None = None


@dataclass(frozen=True)
class TreeNode:
    """A node by its dotted path; nodes above it that are not given are added.

    level: colour from 0 (nothing to see) to 8, None is grey.  is_marked: it stands out.
    """

    path: str
    kind: str = ""
    detail: str = ""
    level: int | None = None
    chips: tuple[Chip, ...] = ()
    is_marked: bool = False


@dataclass(frozen=True)
class Tree(Section):
    """Nodes that contain one another, for example a network's modules.

    With an anchor, links find a node by the anchor, "-" and its path.
    root: the name of the node whose path is empty.  legend: what the levels 1 and 8 mean.
    """

    nodes: Sequence[TreeNode]
    root: str = "the whole network"
    legend: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class GraphNode:
    """A module or an operation by its dotted path; modules that contain others can be opened.

    levels: for each of the graph's colourings a level from 0 to 8, or None for grey.
    """

    path: str
    kind: str = ""
    detail: str = ""
    levels: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class GraphSide:
    """One network: its nodes in the order in which they run, and who feeds whom, by position."""

    title: str
    nodes: Sequence[GraphNode]
    edges: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Graph(Section):
    """Networks side by side as graphs of their modules, which open where they contain others.

    colourings: what the levels can say, for example "verify"; a page lets its reader choose.
    """

    sides: Sequence[GraphSide]
    colourings: Sequence[str] = ()


@dataclass(frozen=True)
class HeatMap(Section):
    """Numbers by row and column, coloured by `levels` (0 to 8, None is grey).

    values, levels: as many rows as `rows`, as many entries in each as `columns`.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    unit: str = ""
    levels: Sequence[Sequence[int | None]] = ()


@dataclass(frozen=True)
class Mosaic(Section):
    """A coloured cell per item in their order: a name and a level (0 to 8, None is grey)."""

    cells: Sequence[tuple[str, int | None]]


@dataclass(frozen=True)
class Picture:
    """An image or a sound as bytes; kind: "image/png", "image/jpeg", "audio/wav"."""

    caption: str
    content: bytes
    kind: str = "image/png"


@dataclass(frozen=True)
class Pictures(Section):
    """Images or sounds side by side, for example samples of a dataset; a page carries them."""

    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Group(Section):
    """Sections under a common heading."""

    sections: Sequence[Section]


@dataclass(frozen=True)
class Document:
    """A whole report.

    title: the verb and what it was asked about.  subtitle: what was read, how long it took.
    notes: what else a reader should know.  rules: what stands behind the findings' codes.
    root: the folder that the findings' files are relative to; text and page write it before them.
    """

    title: str
    outcome: Outcome
    sections: Sequence[Section] = ()
    notes: Sequence[str] = ()
    subtitle: str = ""
    rules: Sequence[Rule] = ()
    root: str = ""

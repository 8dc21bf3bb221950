"""`convert --from-export`: export in a process that has torch, write, and say what is lacking."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isograd.convert.generated import library
from isograd.convert.graph.alignment import align
from isograd.convert.graph.bodies import Lack, has_special, values_of
from isograd.convert.graph.calls import changes_weight, needed, shared_changes, tree_of
from isograd.convert.graph.classes import Classes
from isograd.convert.graph.modules import Hierarchy
from isograd.convert.graph.operators import is_known
from isograd.convert.graph.program import (
    Graph,
    Produced,
    Program,
    Reference,
    Weight,
    read_program,
)
from isograd.convert.graph.writing import COMPOSITIONS, module_text
from isograd.convert.verifying.builders import Builder
from isograd.convert.verifying.case_folder import CaseFolder
from isograd.convert.verifying.places import Place
from isograd.errors import UserCodeError
from isograd.files import write_bytes, write_text
from isograd.tensors import Array
from isograd.verify.case import TensorSpec
from isograd.verify.inputs import make_tensor

_CHILD = Path(__file__).parent / "children" / "export_child.py"
_EXPORT_S = 1200
#: Names of builders that say nothing of the network.
_PLAIN_NAMES = ("build", "make", "create", "model", "net", "network", "main", "from_name")
_LOST = (
    "What a graph does not hold: control flow (this is the path that the given inputs took),",
    "sizes other than those of the inputs where the code reshapes by number, and code between the",
    "layers of the reference.",
)


@dataclass(frozen=True)
class GraphFinding:
    """Something that the port lacks, or that a person should know.

    needs_a_person: whether the port cannot be right without an edit.
    """

    code: str
    module: str
    message: str
    advice: str
    needs_a_person: bool = True


@dataclass(frozen=True)
class GraphConversion:
    """What `--from-export` left.

    files: what was written, empty where an operator is unknown.  builder: the port's builder.
    inputs: those it was exported with.
    """

    builder: Builder
    files: tuple[Path, ...]
    findings: tuple[GraphFinding, ...]
    inputs: tuple[TensorSpec, ...]
    operators: int = 0
    classes: int = 0

    @property
    def needs_a_person(self) -> bool:
        """Whether something has to be done before the port can be right."""
        return any(finding.needs_a_person for finding in self.findings)


_FIXED = GraphFinding(
    "export.fixed-batch",
    "",
    "the size of the batch stands in the graph, so the port takes batches of the given size alone",
    "Export with the batch that is needed.",
    needs_a_person=False,
)


def convert_from_export(
    place: Place,
    builder: Builder,
    out: Path,
    inputs: Sequence[TensorSpec] = (),
    reference_python: str | None = None,
) -> GraphConversion:
    """Write a MindSpore module for a builder's network into the folder `out`.

    place: where the reference is imported from.  inputs: empty to guess them.  Raises UserCodeError
    where the reference does not build or cannot be exported.
    """
    with tempfile.TemporaryDirectory(prefix="isograd-export-") as name:
        folder = Path(name)
        chosen = export(folder, place, builder, inputs, reference_python)
        program = _read(folder / "program.json")
        return write_port(program, folder / "tensors.npz", builder, out, chosen)


def export(
    folder: Path,
    place: Place,
    builder: Builder,
    inputs: Sequence[TensorSpec],
    reference_python: str | None,
) -> tuple[TensorSpec, ...]:
    """Export into a folder; returns the inputs."""
    case = CaseFolder(folder, place, Place(), builder, builder, reference_python)
    chosen = tuple(inputs)
    if not chosen:
        guessed = case.guess_inputs()
        if isinstance(guessed, str):
            raise UserCodeError(
                f"the inputs of {builder.text} are not known: {guessed}",
                "Give them, for example --input 2x3x64x64.",
            )
        chosen = guessed
    arrays = {str(i): make_tensor(spec, (0, 0, i, 0)).values for i, spec in enumerate(chosen)}
    np.savez(folder / "inputs.npz", **arrays)
    np.savez(folder / "more.npz", **_larger(arrays))
    command = [reference_python or sys.executable, str(_CHILD), str(folder)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_EXPORT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserCodeError(
            f"torch.export of {builder.text} took more than {_EXPORT_S} s",
            "Export a smaller network, or smaller inputs.",
        ) from None
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or ["nothing"]
        raise UserCodeError(
            f"{builder.text} could not be built or exported: {words[-1][:400]}",
            "Run it with torch.export on its own.",
            done.stderr,
        )
    return chosen


def _larger(arrays: dict[str, Array]) -> dict[str, Array]:
    """The inputs with more rows, all those that have as many as the first.

    Twice as many and one: half a batch then is no whole number, and is not taken for a constant.
    """
    first = arrays["0"]
    size = first.shape[0] if first.ndim else 0
    return {
        key: np.concatenate([array, array, array[:1]])
        if array.shape[:1] == (size,) and size
        else array
        for key, array in arrays.items()
    }


def write_port(
    program: Program, tensors: Path, builder: Builder, out: Path, inputs: tuple[TensorSpec, ...]
) -> GraphConversion:
    """Write the port of an exported program."""
    name = _file_name(builder)
    graph = program.train or program.evaluate
    if graph is None:
        raise UserCodeError(
            f"{builder.text} cannot be exported: {program.problem}",
            "Convert its source instead, or take out what the message names.",
        )
    findings = list(_mode_findings(program))
    nodes = needed(graph)
    findings += _unknown(program)
    findings += _shared(program)
    port = Builder(name, "build")
    if any(finding.needs_a_person for finding in findings):
        return GraphConversion(port, (), tuple(findings), inputs, len(nodes))
    hierarchy = _hierarchy(program, graph, tensors)
    if hierarchy.fixed and not program.is_fixed:
        findings.append(_FIXED)
    if hierarchy.lacks:
        findings += [_lack(found) for found in dict.fromkeys(hierarchy.lacks)]
        return GraphConversion(port, (), tuple(findings), inputs, len(nodes))
    classes = Classes(hierarchy)
    classes.make()
    text, used = module_text(
        name, builder.text, classes.classes, classes.made[""], program.tensors, _LOST
    )
    files = _write(out, name, text, used, tensors)
    return GraphConversion(port, files, tuple(findings), inputs, len(nodes), len(classes.classes))


def _write(
    out: Path, name: str, text: str, used: tuple[str, ...], tensors: Path
) -> tuple[Path, ...]:
    compile(text, f"{name}.py", "exec")
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{name}.py", out / f"{name}.npz"]
    write_text(files[0], text)
    write_bytes(files[1], tensors.read_bytes())
    if used:
        files.append(out / f"{COMPOSITIONS}.py")
        write_text(files[2], library().module_of(used))
    return tuple(files)


def _file_name(builder: Builder) -> str:
    last = builder.name.rpartition(".")[2]
    chosen = builder.module.rpartition(".")[2] if last in _PLAIN_NAMES else last
    name = re.sub(r"\W", "_", chosen).lower()
    return f"{name}_port" if name == COMPOSITIONS or name[:1].isdigit() else name


def _hierarchy(program: Program, graph: Graph, tensors: Path) -> Hierarchy:
    other = program.evaluate if program.train is not None else None
    tree = tree_of(graph, needed(graph), _names(graph))
    alignment = None
    if other is not None:
        evaluation = tree_of(other, needed(other), _names(other))
        results = _results(graph, other)
        alignment = align(tree, evaluation, results)
    return Hierarchy(program, tree, alignment, graph, other, _scalars(tensors))


def _names(graph: Graph) -> list[str]:
    return [ref.name for ref in values_of(graph.output) if isinstance(ref, Produced)]


def _results(train: Graph, evaluation: Graph) -> dict[str, Reference] | None:
    """Which result of evaluation is which of training; None where they return other things."""
    ours, theirs = values_of(train.output), values_of(evaluation.output)
    if len(ours) != len(theirs) or _shape(train.output) != _shape(evaluation.output):
        return None
    pairs = zip(ours, theirs, strict=True)
    return {a.name: b for a, b in pairs if isinstance(a, Produced)}


def _shape(value: object) -> object:
    if isinstance(value, list):
        return {key: _shape(part) for key, part in value}
    return tuple(_shape(part) for part in value) if isinstance(value, tuple) else None


def _scalars(tensors: Path) -> dict[str, str]:
    """Constants of one element, written where they are used."""
    found = {}
    with np.load(tensors, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if name.startswith("constant_") and array.ndim == 0:
                dtype = "bool_" if array.dtype == bool else str(array.dtype)
                found[name] = f"ms.Tensor({array.item()!r}, ms.{dtype})"
    return found


def _read(path: Path) -> Program:
    """The program, with the batch left open if the port has the operators for that."""
    program = read_program(path)
    if program.is_fixed:
        computing = read_program(path, computing=True)
        if not computing.is_fixed and len(_unknown(computing)) <= len(_unknown(program)):
            return computing
    return program


def _mode_findings(program: Program) -> list[GraphFinding]:
    found = [
        GraphFinding(
            "export.own-gradient",
            "",
            f"{name} is a torch.autograd.Function: the graph has its forward, not its backward",
            "The port differentiates its forward. Where the verification finds another gradient, "
            "write its backward by hand, or convert the network from its source.",
            needs_a_person=False,
        )
        for name in program.functions
    ]
    nodes = program.train.nodes if program.train is not None else ()
    written = {next(iter(node.arguments.values())) for node in nodes if changes_weight(node)}
    changed = [name for name in program.changed if Weight(name) not in written]
    if changed:
        names = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")
        found.append(
            GraphFinding(
                "export.changed-parameter",
                "",
                f"the forward pass changes parameters in training ({names}); the graph does not",
                "Write the change by hand, or convert the network from its source.",
            )
        )
    if program.is_fixed:
        found.append(_FIXED)
    if program.train is not None and program.evaluate is not None:
        return found
    lost = "training" if program.train is None else "evaluation"
    return [
        *found,
        GraphFinding(
            "export.one-mode",
            "",
            f"the port computes the other mode's graph in {lost}: {program.problem}",
            f"Do not use the port in {lost} mode.",
            needs_a_person=False,
        ),
    ]


def _shared(program: Program) -> list[GraphFinding]:
    found = {}
    for graph in (program.train, program.evaluate):
        for node in shared_changes(graph.nodes if graph is not None else ()):
            path = node.stack[-1][1] if node.stack else ""
            found[(node.target, node.trace)] = GraphFinding(
                "export.shared-memory",
                path,
                f"{node.target} in {path or 'the network'} changes a tensor that is read again "
                f"under another name{_place(node.trace)}",
                "Write the reference without changing it in place.",
            )
    return list(found.values())


def _unknown(program: Program) -> list[GraphFinding]:
    found: dict[str, GraphFinding] = {}
    for graph in (program.train, program.evaluate):
        for node in needed(graph) if graph is not None else ():
            if is_known(node.target) or has_special(node.target) or node.target in found:
                continue
            path = node.stack[-1][1] if node.stack else ""
            found[node.target] = GraphFinding(
                "export.unknown-operator",
                path,
                f"{node.target} in {path or 'the network'} is not in isograd's table of operators"
                f"{_place(node.trace)}",
                "Add it to isograd/convert/graph/aten.toml with an example, or write this module "
                "by hand.",
            )
    return list(found.values())


def _place(trace: str) -> str:
    return f" ({trace})" if trace else ""


def _lack(found: Lack) -> GraphFinding:
    return GraphFinding(
        "export.no-counterpart",
        found.module,
        f"{found.target} in {found.module or 'the network'}: {found.reason}{_place(found.trace)}",
        "Write this module by hand.",
    )

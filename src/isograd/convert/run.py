"""A whole conversion: read every file for what it tells of the others, then write each port."""

from __future__ import annotations

import ast
import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from isograd.collector import without_collector
from isograd.convert.analysis.absent_weights import NORMS, norms_with_absent_weights
from isograd.convert.analysis.absent_weights import REASON as ABSENT
from isograd.convert.analysis.attributes_read import attributes_read
from isograd.convert.analysis.class_bases import mixed_into_modules, with_modes
from isograd.convert.analysis.holdings import Holdings
from isograd.convert.analysis.layers import RECURRENT, layers_of
from isograd.convert.analysis.records import WORDS, fields_with_lists
from isograd.convert.analysis.starting import (
    Said,
    starting_of,
    with_importers,
    with_importers_and_imports,
)
from isograd.convert.analysis.state_dicts import WORD as STATE
from isograd.convert.analysis.state_dicts import StateFile, may_read_states
from isograd.convert.analysis.unbatched import ASKED as SEQUENCES
from isograd.convert.analysis.unbatched import REASON as UNBATCHED
from isograd.convert.analysis.unbatched import unbatched_layers
from isograd.convert.analysis.weights_read import ASKED, CONV1D, REASON, reads_conv1d
from isograd.convert.compiled_steps import compile_steps
from isograd.convert.conversion import Options, Run
from isograd.convert.destination import Destination
from isograd.convert.engine import Engine
from isograd.convert.facts import Member
from isograd.convert.file import FileEdit
from isograd.convert.infinities import INFINITY, NAN, Infinities, Special
from isograd.convert.located import WITH_MODES
from isograd.convert.model import ConvertReport, FileConversion, Finding
from isograd.convert.names import Index
from isograd.convert.names_in_strings import LOOKED_IN, LOOKS_UP, SETTINGS, texts_of, words_of
from isograd.convert.notebooks import SUFFIX, read_notebook
from isograd.convert.output import (
    copy_others,
    home_of,
    place_of,
    write_generated,
)
from isograd.convert.passes.infinite_scores import LOSSES, infinities_of, nans_of
from isograd.convert.passes.infinite_softmaxes import SOFTMAXES
from isograd.convert.passes.lost_nans import LOSING
from isograd.convert.places import Place
from isograd.convert.reading import read_file
from isograd.convert.run_sources import below, entries_of, located, source_of
from isograd.convert.settings import Settings
from isograd.convert.training.decision import may_record
from isograd.convert.walk import Files, find_files
from isograd.convert.writing import Written, convert_file, own_fault
from isograd.engine import forked_map
from isograd.errors import UsageError
from isograd.files import require_path
from isograd.knowledge.store import load_knowledge
from isograd.scan.names import torch_names
from isograd.scan.project import ModuleIndex, reading_order
from isograd.scan.selection import Skipper

_EVERY = 5
#: Of files with so much text together the trees are kept from the first reading for the second;
#: a tree takes 33 times its text (measured on timm).
_KEPT_BYTES = 8 << 20
#: So much text takes half a second to convert; to fork a process takes a twentieth.
_FORKED_BYTES = 250_000


def convert_path(path: Path, out: Path | None, options: Options | None = None) -> ConvertReport:
    """Convert a file or a folder; nothing of it is imported or run.

    out: where the port appears, whole or not at all; None converts to nowhere.
    Raises UsageError where there is nothing to convert, or `out` cannot be used.
    """
    options = options or Options()
    started = time.perf_counter()
    require_path(path, "Give a Python file or a folder.")
    if path.is_file() and path.suffix not in (".py", SUFFIX):
        raise UsageError(f"{path} is no Python file", "Give a .py file, a notebook or a folder.")
    destination = Destination(path, out, force=options.force) if out is not None else None
    skipper = Skipper.of(path, options.selection)
    files = Files([Path(path.name)]) if path.is_file() else find_files(path, skipper)
    if not files.python:
        raise UsageError(f"there is no Python file in {path}", "Give a folder with PyTorch code.")
    base = path.parent if path.is_file() else path
    run = Run(
        path,
        base,
        files,
        options,
        options.knowledge or load_knowledge(),
        ModuleIndex(path, [base / file for file in files.python]),
        Index(torch_names()),
    )
    with without_collector():
        _read_all(run)
        if destination is None:
            done = list(_convert_all(run, None))
            generated = write_generated(run, None)
        else:
            with destination as folder:
                done = list(_convert_all(run, folder))
                generated = write_generated(run, folder)
                copied = copy_others(run, folder)
                destination.finish()
    torch, mindspore, device = run.knowledge.executed_on
    return ConvertReport(
        str(path),
        "" if out is None else str(out),
        options.target,
        (*_of_folders(files), *sorted(done, key=lambda item: item.file)),
        generated,
        copied if destination is not None else len(files.others),
        torch,
        mindspore,
        device,
        time.perf_counter() - started,
        suppressed=run.suppressed,
        skipped=tuple(skipper.skipped),
    )


def _read_all(run: Run) -> None:
    """The first reading, imported files first: one tree at a time."""
    paths = [run.base / file for file in run.files.python]
    imports = {path: _imports(run, path) for path in paths}
    order = list(reading_order(paths, imports))
    own = (*run.index.names.values(), *run.index.imported)
    roots = {name.partition(".")[0] for name in own if name}
    run.names.roots = {root for root in roots if run.index.layout.is_own(root)}
    run.files.python = [path.relative_to(run.base) for path in order]
    for done, path in enumerate(order):
        file = path.relative_to(run.base).as_posix()
        if done % _EVERY == 0:
            gc.collect(0)
            if run.options.progress is not None:
                run.options.progress.advance(done, 2 * len(order), file)
        _read_one(run, path, file)
    for path, facts in [*run.facts.items()]:
        known = {*facts.classes.values()}
        if any(info.is_mixed and not known.issuperset(info.takers) for info in known):
            _read_one(run, path, below(run, path).as_posix())  # what others mix in, once more
    _settle(run, imports)


def _imports(run: Run, path: Path) -> list[Path]:
    try:
        return run.index.imports(path, _text_of(path))
    except OSError:
        return []


def _text_of(path: Path) -> str:
    """The Python of a file, as far as it can be read."""
    raw = path.read_bytes()
    if path.suffix == SUFFIX:
        read = read_notebook(raw, path.name)
        return "" if isinstance(read, Finding) else read.text
    return raw.decode("utf-8", errors="replace")


def _read_one(run: Run, path: Path, file: str) -> None:
    try:
        read = read_file(path, file)
        if read.source is None:
            return
        facts, summary = located(run, path, read.source)
        place = place_of(run, below(run, path))
        run.names.note(read.source.tree, place.module, place.package, place.canonical)
    except OSError as error:
        reason = error.strerror or str(error)
        run.failed[path] = Finding(file, 0, 0, "unreadable", f"it cannot be read: {reason}")
        return
    except Exception as error:
        run.failed[path] = own_fault(file, error)
        return
    run.index.keep(summary)
    run.facts[path] = facts
    if run.kept_bytes + len(read.raw) <= _KEPT_BYTES:
        run.kept[path] = read
        run.kept_bytes += len(read.raw)
    run.has_complex = run.has_complex or facts.makes_complex
    run.makes_doubles = run.makes_doubles or facts.makes_doubles
    run.works_in_place = run.works_in_place or facts.works_in_place
    if any(word in read.source.text for word in WORDS):
        run.list_fields |= fields_with_lists(read.source.tree)
    run.has_states = run.has_states or STATE in read.source.text
    if not run.looks_up and b"attr" in read.raw and b"torch" in read.code:
        run.looks_up = LOOKS_UP.search(read.code) is not None


def _settle(run: Run, imports: Mapping[Path, list[Path]]) -> None:
    """What holds for all files, now that all are read; imports: of each file, of the project's."""
    if not run.options.eager:
        compile_steps(run)
    run.reads_states = run.has_states and _may_read_states(run)
    read = attributes_read(run.facts.values(), run.knowledge.unheld_attributes)
    run.layers = layers_of(run.facts.values(), run.knowledge.layer_settings, read)
    if CONV1D in run.layers.used and not run.layers.is_runtime(CONV1D) and _reads_conv1d(run):
        read[CONV1D] = REASON
        run.layers = layers_of(run.facts.values(), run.knowledge.layer_settings, read)
    if not RECURRENT.isdisjoint(run.layers.used):
        files = _edits(run, lambda text: any(word in text for word in SEQUENCES))
        found = frozenset[str]().union(*map(unbatched_layers, files))
        if found:
            read |= dict.fromkeys(found, UNBATCHED)
            run.layers = layers_of(run.facts.values(), run.knowledge.layer_settings, read)
    _settle_norms(run, read)
    leaves = {path for path, facts in run.facts.items() if facts.leaves_training}
    leaves = with_importers_and_imports(leaves, run.facts, imports)
    run.starting = starting_of(
        Said(
            path.relative_to(run.base).as_posix(),
            facts.elsewhere,
            facts.called,
            facts.made,
            facts.in_inference,
            facts.looks_up,
            facts.constructors,
            path in leaves,
        )
        for path, facts in run.facts.items()
    )
    own = with_importers({p for p, facts in run.facts.items() if facts.sets_own_modes}, imports)
    names = frozenset(path.relative_to(run.base).as_posix() for path in own)
    run.starting = replace(run.starting, own_modes=names)
    if run.looks_up:
        run.words = _words(run)
        if any(WITH_MODES.match(f"torch.nn.{word}") for word in run.words):
            run.layers = replace(run.layers, has_modes=True)


def _settle_norms(run: Run, read: Mapping[str, str]) -> None:
    """Which norms are the runtime's since they may have no weight; read: why other layers are."""
    if run.layers.every or NORMS.isdisjoint(run.layers.used):
        return
    absent = norms_with_absent_weights(lambda is_asked: _edits(run, is_asked))
    if "" in absent:  # by whichever call
        why = {**read, **dict.fromkeys(NORMS & run.layers.used, ABSENT)}
        run.layers = layers_of(run.facts.values(), run.knowledge.layer_settings, why)
    run.layers = replace(run.layers, without_weight=absent)


def _may_read_states(run: Run) -> bool:
    """Whether the project may read the names of what a network's `state_dict()` holds."""

    def state_file(path: Path) -> StateFile:
        kept = run.rewritten.get(path) or (run.kept[path].source if path in run.kept else None)

        def read() -> tuple[ast.Module, dict[Place, Member], set[Place]]:
            source = kept or source_of(run, path)
            tree = ast.Module([], []) if source is None else source.tree
            return tree, run.facts[path].members, run.facts[path].unknown

        return StateFile(lambda: _text_of(path) if kept is None else kept.text, read)

    return may_read_states(map(state_file, run.facts))


def _edits(run: Run, is_asked: Callable[[str], object]) -> Iterator[FileEdit]:
    """The files whose text is asked for, read."""
    engine = Engine(entries_of(run), run.names, Settings(run.options.target, run.layers))
    for path, facts in run.facts.items():
        source = run.rewritten.get(path) or source_of(run, path)
        if source is not None and is_asked(source.text):
            file = engine.read(source, facts, place_of(run, below(run, path)))
            if file is not None:
                yield file


def _reads_conv1d(run: Run) -> bool:
    """Whether any file looks at the axes of a Conv1d's weight."""
    files = _edits(run, lambda text: any(word in text for word in ASKED))
    return any(map(reads_conv1d, files))


def _returning(
    run: Run, special: Special, asking: frozenset[str], of: Callable[[FileEdit], Infinities]
) -> frozenset[str]:
    """The functions that may return a special number, where other files may lose it."""
    used = (api for facts in run.facts.values() for api in facts.apis)
    is_asked = any(api.replace("torch.Tensor.", "torch.") in asking for api in used)
    if not is_asked or len(run.facts) < 2:
        return frozenset()
    found = [of(file).results() for file in _edits(run, special.pattern.search)]
    return frozenset().union(*found)


def _words(run: Run) -> set[str]:
    """The project's texts that are names in torch."""
    known = set().union(*(torch_names().members_of(package) for package in LOOKED_IN))
    found: set[str] = set()
    for file in (*run.files.python, *run.files.others):
        is_code = file.suffix in (".py", SUFFIX)
        if is_code or file.suffix in SETTINGS:
            with contextlib.suppress(OSError):  # told where it is converted or copied
                raw = (run.base / file).read_bytes()
                found |= known.intersection(texts_of(raw) if is_code else words_of(raw))
    return found


def _convert_all(run: Run, folder: Path | None) -> Iterator[FileConversion]:
    """The second reading: each file is converted and written at once, several beside each other."""
    classes = [info for facts in run.facts.values() for info in facts.classes.values()]
    settings = Settings(
        run.options.target,
        run.layers,
        run.knowledge.layer_attributes,
        mixed_into_modules(classes),
        frozenset(run.words),
        run.has_complex,
        run.works_in_place,
        run.starting,
        run.training.compiles,
        may_record(run.facts.values(), run.training),
        with_modes(classes),
        run.list_fields,
        run.reads_states,
        frozenset().union(*(facts.buffers for facts in run.facts.values())),
        run.makes_doubles,
        Holdings(facts.holding for facts in run.facts.values()),
        any(facts.computes_in_modes for facts in run.facts.values()),
        _returning(run, INFINITY, LOSSES | SOFTMAXES, infinities_of),
        run.training.evaluates,
        frozenset().union(*(facts.asked_modules for facts in run.facts.values())),
        run.training.computed,
        _returning(run, NAN, LOSING | SOFTMAXES, nans_of),
    )
    engine = Engine(entries_of(run), run.names, settings)
    python = run.files.python

    def convert_one(number: int) -> Written:
        if number % _EVERY == 0:
            gc.collect(0)
        return convert_file(run, engine, python[number], folder)

    is_long = run.kept_bytes > _FORKED_BYTES
    written = forked_map(convert_one, range(len(python)), is_long=is_long)
    for done, (file, one) in enumerate(zip(python, written, strict=True)):
        if done % _EVERY == 0 and run.options.progress is not None:
            run.options.progress.advance(len(python) + done, 2 * len(python), file.as_posix())
        if one.composites:
            run.composites.setdefault(home_of(run, file), set()).update(one.composites)
        run.suppressed += one.suppressed
        yield one.conversion


def _of_folders(files: Files) -> list[FileConversion]:
    return [FileConversion(finding.file, findings=(finding,)) for finding in files.findings]

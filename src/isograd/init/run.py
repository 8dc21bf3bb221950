"""`isograd init`: a first case by looking at both files, then trying it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from isograd.errors import IsogradError, UsageError
from isograd.files import require_writable, write_text
from isograd.frameworks.base import SideSpec
from isograd.init.apis import FRAMEWORKS, load_apis
from isograd.init.model import Choice, InitReport
from isograd.init.offers import Callee, LossCallee, SideFound
from isograd.init.probe import Probe, Wanted
from isograd.init.sides import find_side
from isograd.init.values import Known, Parts, Tensor, Value
from isograd.init.writing import SideFile, case_text, loss_parameters
from isograd.verify.arguments import Argument, ContainerSpec, PlainSpec, TensorSpec

_SIDES = ("reference", "port")
#: A loader's batch is cut down to this, because a verification runs it many times.
_LARGEST_BATCH = 4
_INT32 = "mindspore.int32"


def init(
    reference: str | Path,
    port: str | Path,
    output: str | Path = "case.toml",
    *,
    force: bool = False,
    no_run: bool = False,
) -> InitReport:
    """Write a first case for `isograd verify` by looking at both files.

    Beside the case up to two files appear, CASE_reference.py and CASE_port.py, where a loss or an
    optimizer stands in the middle of a program.  Both networks are built and run once, unless
    no_run is given.  Raises `UsageError` where a file cannot be read, holds no network, or would be
    overwritten without force.
    """
    path = Path(output)
    apis = load_apis()
    sides = (find_side(Path(reference), apis), find_side(Path(port), apis))
    for side in sides:
        if side.model is None:
            raise UsageError(
                f"{side.path} holds no network that isograd can see",
                "Name the file that defines the network's class or the function that builds it.",
            )
    work = _Work(path, _harmonized(sides))
    for file in (path, *(work.file_of(key) for key in _SIDES)):
        if file.exists() and not force:
            raise UsageError(f"{file} is there already", "Add --force, or give another -o.")
        require_writable(file)
    return work.write(is_run=not no_run)


def _harmonized(sides: tuple[SideFound, SideFound]) -> tuple[SideFound, SideFound]:
    """Both sides with the arguments that only one of them was seen to give."""
    models = [side.model for side in sides]
    found = []
    for side, own, other in zip(sides, models, reversed(models), strict=True):
        assert own is not None
        assert other is not None
        taken = {k: v for k, v in other.kwargs.items() if k in own.parameters}
        kwargs = {**taken, **own.kwargs} if own.name is not None else own.kwargs
        missing = tuple(name for name in own.missing if name not in kwargs)
        model = dataclasses.replace(own, kwargs=kwargs, missing=missing)
        found.append(dataclasses.replace(side, model=model))
    return found[0], found[1]


@dataclass
class _Plan:
    """What the case will hold; losses: by side, None where a stand-in takes their place."""

    wanted: list[Wanted]
    inputs: list[Argument] | None = None
    targets: list[Argument] = field(default_factory=list)
    losses: tuple[LossCallee, LossCallee] | None = None
    optimizers: tuple[Callee, Callee] | None = None
    cast: str | None = None


class _Work:
    """One case at work."""

    def __init__(self, path: Path, sides: tuple[SideFound, SideFound]) -> None:
        self._path = path
        self._sides = sides
        self._frameworks = [s.framework or f for s, f in zip(sides, FRAMEWORKS, strict=True)]
        self._unknown: list[str] = []
        self._runs: bool | None = None

    def file_of(self, key: str) -> Path:
        """The file beside the case for one side."""
        return self._path.with_name(f"{self._path.stem}_{key}.py")

    def write(self, *, is_run: bool) -> InitReport:
        """Decide, try, and write; the files appear last."""
        plan = self._plan()
        for side in self._sides:
            self._unknown += side.notes
            self._say_of_model(side)
        if is_run:
            self._try(plan)
        if plan.inputs is None:
            known = [want.known for want in plan.wanted]
            plan.inputs = [spec or TensorSpec((2, 3, 32, 32)) for spec in known]
            if None in known or not known:
                self._unknown.append(
                    "the inputs are written nowhere: correct [[inputs]] in the case"
                )
        if plan.losses is not None and not plan.targets:
            known = [_argument(tensor, None) for tensor in plan.losses[0].targets]
            plan.targets = [spec or TensorSpec((2,)) for spec in known]
            if None in known:
                self._unknown.append(
                    "the targets are written nowhere: correct [[targets]] in the case"
                )
        return self._written(plan)

    # What the files tell

    def _plan(self) -> _Plan:
        reference, port = self._sides
        plan = _Plan(self._wanted())
        if reference.loss is not None and port.loss is not None:
            if len(reference.loss.targets) == len(port.loss.targets):
                plan.losses = reference.loss, port.loss
                plan.targets = []
            else:
                self._unknown.append("the losses of the two files take different targets")
        elif reference.loss is not None or port.loss is not None:
            lacking = port if port.loss is None else reference
            self._unknown.append(f"{lacking.path.name} holds no loss that isograd can see")
        if reference.optimizer is not None and port.optimizer is not None:
            plan.optimizers = reference.optimizer, port.optimizer
        elif reference.optimizer is not None or port.optimizer is not None:
            lacking = port if port.optimizer is None else reference
            self._unknown.append(f"{lacking.path.name} holds no optimizer that isograd can see")
        return plan

    def _wanted(self) -> list[Wanted]:
        reference, port = self._sides
        seen = reference.inputs if reference.inputs is not None else port.inputs
        names = reference.arguments or ()
        if seen is None:
            count = len(reference.required or ())
            seen = {str(i): Tensor() for i in range(max(1, count))}
        wanted = []
        for key, value in seen.items():
            is_place = key.isdigit()
            name = names[int(key)] if is_place and int(key) < len(names) else key
            spec = _argument(value, None if is_place else key)
            wanted.append(Wanted(key, spec, reference.consumers.get(name)))
        return wanted

    def _say_of_model(self, side: SideFound) -> None:
        assert side.model is not None
        if side.others:
            chosen = side.model.name or side.model.code
            self._unknown.append(
                f"{side.path.name}: {chosen} is compared; it also defines {', '.join(side.others)}"
            )
        for name in side.model.missing:
            self._unknown.append(
                f"{side.path.name}: {side.model.name} needs {name}; write it under kwargs"
            )

    # Trying

    def _try(self, plan: _Plan) -> None:
        """Settle by running what the files do not tell; notes what does not run."""
        self._runs = False
        try:
            with Probe(self._spec(0), "reference") as probe:
                tried = probe.inputs(plan.wanted)
                if tried.arguments is None:
                    self._unknown.append(f"the reference did not run: {tried.problem}")
                    return
                plan.inputs = list(tried.arguments)
                if plan.losses is not None:
                    self._try_targets(plan, probe, tried)
            with Probe(self._spec(1), "port") as probe:
                self._try_port(plan, probe)
        except IsogradError as error:
            self._unknown.append(str(error))
        finally:
            for key in _SIDES:
                self._draft(key).unlink(missing_ok=True)

    def _try_targets(self, plan: _Plan, probe: Probe, tried: object) -> None:
        from isograd.init.probe import Tried

        assert isinstance(tried, Tried)
        assert plan.losses is not None
        loss = plan.losses[0]
        known = [_argument(tensor, None) for tensor in loss.targets]
        found = probe.targets(self._loss_name(plan, 0), loss.kind, known, plan.wanted, tried)
        if found.arguments is None:
            self._unknown.append(f"the reference's loss did not run: {found.problem}")
            plan.losses = None
        else:
            plan.targets = list(found.arguments)

    def _try_port(self, plan: _Plan, probe: Probe) -> None:
        assert plan.inputs is not None
        problem = probe.runs(None, plan.wanted, plan.inputs, [])
        if problem:
            self._unknown.append(f"the port did not run: {problem}")
            return
        self._runs = True
        if plan.losses is None:
            return
        for cast in (None, _INT32):
            plan.cast = cast
            problem = probe.runs(self._loss_name(plan, 1), plan.wanted, plan.inputs, plan.targets)
            if not problem:
                return
        self._unknown.append(f"the port's loss did not run: {problem}")
        plan.losses, plan.targets, plan.cast = None, [], None

    def _spec(self, number: int) -> SideSpec:
        side = self._sides[number]
        assert side.model is not None
        file = SideFile(side, self._frameworks[number], self._draft(_SIDES[number]))
        name = file.name("model", side.model, ())
        self._write_draft(file)
        folder = str(self._path.resolve().parent)
        return SideSpec(self._frameworks[number], name, folder, side.model.kwargs)

    def _loss_name(self, plan: _Plan, number: int) -> str:
        """The loss of a side as the probe names it; each try has a file of its own."""
        assert plan.losses is not None
        loss = plan.losses[number]
        cast = plan.cast if number == 1 else None
        draft = self._draft(f"{_SIDES[number]}_loss{'_cast' if cast else ''}")
        file = SideFile(self._sides[number], self._frameworks[number], draft)
        name = file.name("loss", loss, loss_parameters(loss), cast)
        self._write_draft(file)
        return name

    def _draft(self, key: str) -> Path:
        return self._path.with_name(f".{self._path.stem}_{key}.py")

    @staticmethod
    def _write_draft(file: SideFile) -> None:
        if file.text is not None:
            write_text(file.path, file.text)

    # Writing

    def _written(self, plan: _Plan) -> InitReport:
        assert plan.inputs is not None
        files = [str(self._path)]
        choices: list[Choice] = []
        tables: list[tuple[str, dict[str, str]]] = []
        for number, key in enumerate(_SIDES):
            file = SideFile(self._sides[number], self._frameworks[number], self.file_of(key))
            names = self._names(plan, number, file, choices)
            tables.append((self._frameworks[number], names))
            if file.text is not None:
                write_text(file.path, file.text)
                files.append(str(file.path))
        comments = [_comment(plan.wanted[i].known) for i in range(len(plan.inputs))]
        kwargs = [side.model.kwargs if side.model else {} for side in self._sides]
        text = case_text(tables, kwargs, (plan.inputs, comments), plan.targets, self._unknown)
        write_text(self._path, text)
        return InitReport(tuple(files), tuple(choices), tuple(self._unknown), self._runs)

    def _names(
        self, plan: _Plan, number: int, file: SideFile, choices: list[Choice]
    ) -> dict[str, str]:
        side, key = self._sides[number], _SIDES[number]
        assert side.model is not None
        names = {"model": file.name("model", side.model, ())}
        callees: list[tuple[str, Callee | None]] = [("model", side.model)]
        loss = None if plan.losses is None else plan.losses[number]
        if loss is None:
            names["loss"] = file.stand_in_loss()
        else:
            cast = plan.cast if number == 1 else None
            names["loss"] = file.name("loss", loss, loss_parameters(loss), cast)
        optimizer = None if plan.optimizers is None else plan.optimizers[number]
        names["optimizer"] = (
            file.stand_in_optimizer()
            if optimizer is None
            else file.name("optimizer", optimizer, ["model"])
        )
        callees += [("loss", loss), ("optimizer", optimizer)]
        for word, callee in callees:
            taken = "a stand-in" if callee is None else callee.name or callee.code
            where = f"{side.path.name}:{callee.line}" if callee and callee.line else None
            choices.append(Choice(f"{key} {word}", _readable(taken), where))
        return names


def _readable(code: str) -> str:
    """The text of a loss with `target` where its tensors stand."""
    from isograd.init.writing import MARKS

    return MARKS.sub("target", code)


def _comment(known: Argument | None) -> str:
    return "" if known is not None else "tried by its first layer"


def _argument(value: Value, name: str | None) -> Argument | None:
    """What a case writes for a value; None where it is not known."""
    if isinstance(value, Known):
        is_plain = isinstance(value.value, (bool, int, float, str, type(None)))
        return PlainSpec(value.value, name) if is_plain else None
    if isinstance(value, Parts):
        parts = [_argument(part, None) for part in value.items]
        if any(part is None for part in parts):
            return None
        kind = "list" if value.keys is None else "dict"
        keys = tuple(str(key) for key in value.keys or ())
        return ContainerSpec(kind, tuple(part for part in parts if part is not None), keys, name)
    if isinstance(value, Tensor) and value.shape is not None:
        return _tensor(value, value.shape, name)
    return None


def _tensor(value: Tensor, shape: tuple[int, ...], name: str | None) -> TensorSpec:
    if value.is_batch and shape:
        shape = (min(shape[0], _LARGEST_BATCH), *shape[1:])
    fill = value.fill
    low, high = value.low, value.high
    if fill == "integers":
        low, high = (0 if low is None else low), (2 if high is None else high)
    return TensorSpec(shape, value.dtype, fill, 0, name, low, high)

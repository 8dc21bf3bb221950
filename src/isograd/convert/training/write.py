"""A training loop written anew, in torch's terms around what MindSpore compiles.

What is written here is converted afterwards with all the rest of the file.  Names of MindSpore and
of the runtime are written as `_isograd_…`, which a pass spells as the file spells its packages.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable

from isograd.convert.file import FileEdit
from isograd.convert.training.clipping import changing_bound
from isograd.convert.training.model import Form, Phase, Share, StepPlan
from isograd.convert.training.moved_text import MovedText
from isograd.convert.training.paths import block_of, is_number, name_for, path_of, read_by
from isograd.convert.training.placing import place_above

#: The indentation of what stands in a function.
STEP = "    "


class Writer:
    """The edits of one loop."""

    def __init__(
        self, file: FileEdit, plan: StepPlan, taken: set[str], own: set[str], averages: bool
    ) -> None:
        self.file, self.plan, self.text, self.averages = file, plan, file.text, averages
        self.outputs = [plan.names.attributes.get(path, path) for path in plan.outputs]
        given = (name for part, name in plan.names.places if part is plan.loss)
        self.loss = next(given, path_of(plan.loss))
        self.optimizer = self._own(plan.optimizer) if plan.optimizer else "optimizer"
        self.beside = [self._own(path) for path in plan.beside]
        self.scaler = self._own(plan.scaler, self._scaler_of()) if plan.scaler else ""
        self.moved = MovedText(file.text, plan)
        self.stepped = [self._own(path) for path in plan.again.stepped]
        self.make = unused("make_training_step", taken)
        self.step = unused("training_step", own)
        self.last = unused("update_step", own) if plan.form is Form.HELD else ""

    def _own(self, path: str, given: str = "") -> str:
        """The name of an object inside the function that makes the step; given: its expression."""
        names = self.plan.names.objects
        given = given or path
        if given not in names:
            wanted = name_for(path)
            taken = {*names.values(), *self.plan.names.inputs.values(), *self.outputs}
            names[given] = unused(wanted, taken)
        return names[given]

    def _scaler_of(self) -> str:
        return self.plan.branches.scaler if self.plan.branches is not None else self.plan.scaler

    def _removed(self) -> list[ast.stmt]:
        """What becomes part of the step, outermost statements."""
        plan, above = self.plan, self.plan.branches or self.plan.phase
        parts = dict.fromkeys((*plan.forward, *plan.removed, *plan.scaling, *plan.waiting))
        if above is None:
            return list(parts)
        end = above.statement.end_lineno or 0
        outside = [s for s in parts if not above.statement.lineno <= s.lineno <= end]
        return [*outside, above.statement]

    def edits(self) -> list[tuple[int, int, str]]:
        """Replacements by their places in the text."""
        plan, text = self.plan, self.text
        made = ", ".join(self.objects())
        steps = f"{self.step}, {self.last}" if self.last else self.step
        found = [self._function()]
        for first in self._makers():
            at, indent = text.line_start(first.lineno), " " * first.col_offset
            made_step = f"{steps} = {self.make}({made})"
            if plan.phase is not None:  # elsewhere there may be no optimizer
                made_step = f"if {self._test(plan.phase)}:\n{indent}{STEP}{made_step}"
            found.append((at, at, f"{indent}{made_step}\n"))
        found += self.replaced(self.lines())
        if plan.form is Form.HELD:
            found.append((*text.span(plan.update), self._last_call()))
        found += [edit for one in plan.names.reported for edit in one.edits]
        found += [(*text.span(network), plan.optimizer) for network in plan.zeroed_for]
        for start, end in map(text.span, plan.names.own_calls):
            found.append((start, end, text.original[start:end] + ".forward"))
        return found

    def objects(self) -> dict[str, str]:
        """The objects that the step is made of, by their paths, with their names in it."""
        return self.plan.names.objects

    def replaced(self, lines: list[str]) -> list[tuple[int, int, str]]:
        """The edits of the statements that become part of the step; lines: what stands instead."""
        found = []
        for statement in self._removed():
            if statement is self.plan.call and lines:
                joined = f"\n{' ' * statement.col_offset}".join(lines)
                found.append((*self.text.span(statement), self._called(joined)))
            else:
                found.append(self._without(statement))
        return found

    def lines(self) -> list[str]:
        """The call of the step, with what stands around it."""
        plan = self.plan
        inputs = self._listed({path: self.given(path) for path in plan.names.inputs})
        results = [*plan.outputs]
        behind = [one.report for one in plan.names.reported]
        if plan.clip is not None and plan.keeps_norm:
            results.append(plan.clip.result)
            behind += [plan.clip.behind] if plan.clip.behind else []
        behind += self.moved.unchanged(plan.waiting)
        call = f"{self.step}({inputs})"
        return [f"{', '.join(results)} = {call}" if results else call, *behind]

    def _called(self, call: str) -> str:
        """The call of the step; without its phase the forward part alone, as it was."""
        phase = self.plan.phase
        if phase is None:
            return call
        indent = " " * self.plan.call.col_offset
        test = self._test(phase)
        original, span = self.text.original, self.text.span
        forward = [self.moved.dedented(s, original[slice(*span(s))]) for s in self.plan.forward]
        inner = textwrap.indent("\n".join(forward), indent + STEP)
        return f"if {test}:\n{indent}{STEP}{call}\n{indent}else:\n{inner}"

    def _test(self, phase: Phase) -> str:
        return self.text.original[slice(*self.text.span(phase.statement.test))]

    def _makers(self) -> list[ast.stmt]:
        """The statements before which the step is made, or looked up."""
        plan = self.plan
        if isinstance(plan.loop, ast.FunctionDef):
            return [plan.call]
        if not plan.is_renewed:
            return [plan.loop]
        is_behind = plan.update.lineno > (plan.loop.end_lineno or 0)
        # A step behind the loop is taken without a round, too.
        return [plan.loop, plan.call] if is_behind else [plan.call]

    def given(self, path: str, name: str = "") -> str:
        """An input at the call, so that the compiler does not take a number for a constant.

        name: that of its value, if it is another one.
        """
        plan, value = self.plan, name or path
        if path in plan.names.numbers | changing_bound(plan.clip, plan.loop):
            return f"_isograd_mutable({value})"
        is_varying = path in plan.carried | plan.names.varying
        return f"_isograd_varying({value})" if is_varying else value

    def _listed(self, inputs: dict[str, str]) -> str:
        """Inputs with what each is written as, a dictionary that is spread behind all others."""
        spread = self.plan.names.spread
        plain = [text for path, text in inputs.items() if path != spread]
        return ", ".join([*plain, *([f"**{inputs[spread]}"] if spread else [])])

    def _last_call(self) -> str:
        clip = self.plan.clip
        bound = "" if clip is None or is_number(clip.bound) else self.given(clip.bound)
        result = f"{clip.result} = " if clip is not None and clip.result else ""
        behind = f"; {clip.behind}" if clip is not None and clip.behind else ""
        return f"{result}{self.last}({bound}){behind}"

    def _without(self, statement: ast.stmt) -> tuple[int, int, str]:
        """The edit that leaves a statement out with its line, or puts `pass` in its place."""
        text = self.text
        start, end = text.span(statement)
        if kept := [v for v in self.plan.versions if v.statement is statement and v.is_kept]:
            return start, end, f"{kept[0].name} = {kept[0].own}"
        first = text.line_start(statement.lineno)
        assert statement.end_lineno is not None
        stop = text.line_end(statement.end_lineno)
        rest = text.original[end:stop].strip()
        block = block_of(statement, self.file)
        gone = {*self._removed()} - {self.plan.call}
        if text.original[first:start].strip() or all(part in gone for part in block):
            return start, end, "pass"
        if rest:
            return (start, end, "") if rest.startswith("#") else (start, end, "pass")
        return first, text.line_start(statement.end_lineno + 1), ""

    def _function(self) -> tuple[int, int, str]:
        at = place_above(self.plan.loop, self.file, is_script=self._home() is None)
        return at, at, self._source() + "\n\n"

    def _home(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function in which the step is called."""
        loop = self.plan.loop
        return loop if isinstance(loop, ast.FunctionDef) else self.file.tree.function(loop)

    def _source(self) -> str:
        plan = self.plan
        where = self._home()
        of = f"of `{where.name}`" if where is not None else "of this script"
        if where is not plan.loop:
            of = f"of the training loop {of}"
        parts = [
            "@_isograd_kept",
            f"def {self.make}({', '.join(self.objects().values())}):",
            f'    """The compiled step {of}."""',
            *self.body(),
            "",
            f"    return {self.step}, {self.last}" if self.last else f"    return {self.step}",
        ]
        return "\n".join(parts) + "\n"

    def used(self) -> set[str]:
        """The names that the function which makes the step uses already."""
        names = self.plan.names
        taken = {*self.outputs, *names.inputs.values(), *names.objects.values()}
        return taken | read_by(*self.plan.computed, self.plan.loss)

    def name_parts(self, taken: set[str]) -> None:
        """Name the functions and values of the step; taken: all names, which grow by these."""
        names = ("forward_fn", "gradient_fn", "gradients", "norm", "is_finite")
        self.forward, self.derived, self.gradients, self.norm, self.finite = (
            unused(name, taken) for name in names
        )

    def body(self) -> list[str]:
        """What stands in the function that makes the step, but for its return."""
        plan, parts = self.plan, list[str]()
        self.name_parts(self.used())
        if plan.branches is not None:
            parts.append(f"    {self.scaler} = _isograd_scaler({self.scaler})")
        if plan.descent is not None:
            learning = f"{plan.names.objects[plan.descent.network]}.parameters()"
            parts.append(f"    {self.optimizer} = _isograd_descent({learning})")
        parts += [f"    {name} = {code}" for code, name in plan.names.lists.items()]
        parts += [f"    {name} = {code}" for name, code in self._counts().items()]
        parts += [*self.checked(), *self._states()]
        inputs = [*plan.names.inputs.values()]
        parts += ["", *self.forward_part(plan.computed, inputs), "", *self.gradient(), ""]
        parts += self._step()
        return [*parts, "", *self._last()] if self.last else parts

    def checked(self) -> list[str]:
        """What is asked of the optimizer before the step is made."""
        plan = self.plan
        networks = [plan.names.objects[path] for path in plan.same]
        parts = [f"    _isograd_same({self.optimizer}, {one}.parameters())" for one in networks]
        if plan.form is Form.HELD or plan.share is not Share.WHOLE:
            parts.append(f"    {self.optimizer}.hold()")
        return parts

    def _states(self) -> list[str]:
        """What counts the calls of a network, which are one more where it is computed again."""
        plan = self.plan
        if not plan.again.statements:
            return []
        taken = {*self.outputs, *plan.names.inputs.values(), *plan.names.objects.values()}
        self.states, self.kept = unused("states", taken), unused("kept", taken)
        called = "".join(f"{plan.names.objects[path]}, " for path in plan.again.called)
        return [self.apart(), f"    {self.states} = _isograd_states(({called.rstrip()}))"]

    def apart(self) -> str:
        """The check that nothing has changed what a loss goes back through."""
        called = "".join(f"{self.plan.names.objects[path]}, " for path in self.plan.again.called)
        stepped = "".join(f"{one}, " for one in self.stepped)
        return f"    _isograd_apart(({stepped.rstrip()}), ({called.rstrip()}))"

    def returned(self) -> list[str]:
        """The results of the forward part beside the loss."""
        return [name for name in self.outputs if name != self.loss or self.scaler]

    def forward_part(self, statements: Iterable[ast.stmt], inputs: Iterable[str]) -> list[str]:
        """The function that computes the loss by these statements."""
        loss = self.moved.replaced(self.plan.loss)
        scaled = f"{self.scaler}.scaled({loss})" if self.scaler else loss
        return self.function(self.forward, statements, inputs, [scaled, *self.returned()])

    def function(
        self,
        name: str,
        statements: Iterable[ast.stmt],
        inputs: Iterable[str],
        returned: Iterable[str],
    ) -> list[str]:
        """A function of statements of the loop."""
        lines = [f"def {name}({', '.join(inputs)}):"]
        for text in map(self.moved.moved, statements):
            lines += [STEP + line if line.strip() else "" for line in text.split("\n")]
        lines.append(f"{STEP}return {', '.join(returned)}")
        return [STEP + line if line else "" for line in lines]

    def gradient(self, places: str = "None", weights: str = "") -> list[str]:
        """The function of the loss and its gradients.

        places: inputs that have one, too.  weights: what learns, else the optimizers' parameters.
        """
        aux = ", has_aux=True" if self.returned() else ""
        learning = weights or f"{self.optimizer}.parameters"
        if self.beside:
            parts = (f"*{one}.parameters" for one in (self.optimizer, *self.beside))
            learning = f"({', '.join(parts)})"
        call = f"_isograd_value_and_grad({self.forward}, {places}, {learning}{aux})"
        return [f"    {self.derived} = {call}"]

    def _step(self) -> list[str]:
        plan = self.plan
        inputs = ", ".join(plan.names.inputs.values())
        # A graph returns something: what who watches it reads.
        value = self.value({}, must_be_named=not self.outputs and not self.scaler)
        lines = ["@_isograd_jit", f"def {self.step}({self._listed(plan.names.inputs)}):"]
        if plan.again.statements:
            lines.append(f"    {self.kept} = _isograd_copied({self.states})")
        lines.append(f"    {value}, {self.gradients} = {self.derived}({inputs})")
        if plan.again.statements:
            lines.append(f"    _isograd_restored({self.states}, {self.kept})")
        lines += self.update()
        last = f"{self.gradients}[0]" if value == "_" else value
        given = [*self.outputs, self.norm] if plan.keeps_norm else self.outputs
        lines.append(f"    return {', '.join(given) or last}")
        return [STEP + line for line in lines]

    def value(self, names: dict[str, str], *, must_be_named: bool = False) -> str:
        """What takes the results of the forward part; names: those that are other ones there."""
        first = self.loss if self.loss in self.outputs and not self.scaler else "_"
        if must_be_named:
            first = self._name_of_loss()
        given = [names.get(name, name) for name in (first, *self.returned())]
        return f"({', '.join(given)})" if len(given) > 1 else given[0]

    def update(self) -> list[str]:
        """What becomes of the gradients."""
        plan, own = self.plan, self.gradients
        lines = [f"    {own} = _isograd_averaged({own})"] if self.averages else []
        if plan.share is Share.FIRST:
            return [*lines, f"    {self.optimizer}.replace_held({own})"]
        if plan.form is Form.HELD or plan.share is Share.NEXT:
            return [*lines, f"    {self.optimizer}.accumulate({own})"]
        if plan.share is Share.LAST:
            lines.append(f"    {own} = {self.optimizer}.with_held({own})")
        return lines + self._taken(own)

    def _name_of_loss(self) -> str:
        names = self.plan.names
        taken = {*names.inputs.values(), *names.objects.values(), self.optimizer, self.scaler}
        return unused(self.loss if self.loss.isidentifier() else "loss", taken)

    def _taken(self, gradients: str, bound: str = "") -> list[str]:
        """What becomes of gradients: unscaled, clipped, a step where they are finite."""
        lines, clip, own = [], self.plan.clip, self.gradients
        if self.scaler:
            lines.append(f"    {own}, {self.finite} = {self.scaler}.unscaled({gradients})")
            gradients = own
        if clip is not None:
            how = "value" if clip.by_value else "norm"
            limit = bound or self.plan.names.inputs.get(clip.bound) or clip.bound
            lines.append(f"    {own}, {self.norm} = _isograd_clipped_{how}({gradients}, {limit})")
            gradients = own
        if self.scaler:
            lines += [f"    if {self.finite}:", f"        {self.optimizer}({gradients})"]
            lines.append(f"    {self.scaler}.adjust({self.finite})")
        elif self.plan.descent is not None:
            rate = self.plan.descent.rate
            rate = self.plan.names.inputs.get(rate, rate)
            lines.append(f"    {self.optimizer}({gradients}, {rate})")
        else:
            lines += self._steps(gradients)
        return lines

    def _steps(self, gradients: str) -> list[str]:
        """Each optimizer takes its part of the gradients."""
        ends = ["", *self._counts(), ""]
        return [
            f"    {one}({gradients}[{ends[number]}:{ends[number + 1]}])"
            if self.beside
            else f"    {one}({gradients})"
            for number, one in enumerate((self.optimizer, *self.beside))
        ]

    def _counts(self) -> dict[str, str]:
        """Names for how many parameters the optimizers before another one have."""
        found: dict[str, str] = {}
        before = ""
        for one in (self.optimizer, *self.beside)[: len(self.beside)]:
            name = f"count_of_{one}"
            found[name] = f"{before}len({one}.parameters)"
            before = f"{name} + "
        return found

    def _last(self) -> list[str]:
        clip = self.plan.clip
        is_given = clip is not None and not is_number(clip.bound)
        lines = ["@_isograd_jit", f"def {self.last}({'bound' if is_given else ''}):"]
        lines += self._taken(f"{self.optimizer}.held", "bound" if is_given else "")
        result = self.norm if clip is not None and clip.result else f"{self.optimizer}.steps"
        lines.append(f"    return {result}")
        return [STEP + line for line in lines]


def unused(name: str, taken: set[str]) -> str:
    """A name that is free, which is taken from now on."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found

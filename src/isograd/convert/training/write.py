"""A training loop written anew, in torch's terms around what MindSpore compiles.

What is written here is converted afterwards with all the rest of the file.  Names of MindSpore and
of the runtime are written as `_isograd_…`, which a pass spells as the file spells its packages.
"""

from __future__ import annotations

import ast
import textwrap

from isograd.convert.file import FileEdit
from isograd.convert.training.clipping import changing_bound
from isograd.convert.training.model import Form, Phase, Share, StepPlan
from isograd.convert.training.paths import block_of, is_number, path_of, read_by, unshared_changes

_STEP = "    "


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
        self.plain = unshared_changes(plan.computed)
        self.stepped = [self._own(path) for path in plan.again.stepped]
        self.make = _unused("make_training_step", taken)
        self.step = _unused("training_step", own)
        self.last = _unused("update_step", own) if plan.form is Form.HELD else ""

    def _own(self, path: str, given: str = "") -> str:
        """The name of an object inside the function that makes the step; given: its expression."""
        names = self.plan.names.objects
        given = given or path
        if given not in names:
            wanted = path.rpartition(".")[2]
            taken = {*names.values(), *self.plan.names.inputs.values(), *self.outputs}
            names[given] = _unused(wanted, taken)
        return names[given]

    def _scaler_of(self) -> str:
        return self.plan.branches.scaler if self.plan.branches is not None else self.plan.scaler

    def _removed(self) -> list[ast.stmt]:
        """What becomes part of the step, outermost statements."""
        plan, above = self.plan, self.plan.branches or self.plan.phase
        parts = dict.fromkeys((*plan.forward, *plan.removed, *plan.scaling))
        if above is None:
            return list(parts)
        end = above.statement.end_lineno or 0
        outside = [s for s in parts if not above.statement.lineno <= s.lineno <= end]
        return [*outside, above.statement]

    def edits(self) -> list[tuple[int, int, str]]:
        """Replacements by their places in the text."""
        plan, text = self.plan, self.text
        made = ", ".join(plan.names.objects)
        steps = f"{self.step}, {self.last}" if self.last else self.step
        found = [self._function()]
        for first in self._makers():
            at, indent = text.line_start(first.lineno), " " * first.col_offset
            made_step = f"{steps} = {self.make}({made})"
            if plan.phase is not None:  # elsewhere there may be no optimizer
                made_step = f"if {self._test(plan.phase)}:\n{indent}{_STEP}{made_step}"
            found.append((at, at, f"{indent}{made_step}\n"))
        inputs = self._listed({path: self._given(path) for path in plan.names.inputs})
        results = [*plan.outputs]
        behind = [one.report for one in plan.names.reported]
        if plan.clip is not None and plan.keeps_norm:
            results.append(plan.clip.result)
            behind += [plan.clip.behind] if plan.clip.behind else []
        call = f"{self.step}({inputs})"
        call = f"{', '.join(results)} = {call}" if results else call
        for statement in self._removed():
            if statement is plan.call:
                lines = f"\n{' ' * statement.col_offset}".join([call, *behind])
                found.append((*text.span(statement), self._called(lines)))
            else:
                found.append(self._without(statement))
        if plan.form is Form.HELD:
            found.append((*text.span(plan.update), self._last_call()))
        found += [edit for one in plan.names.reported for edit in one.edits]
        for start, end in map(text.span, plan.names.own_calls):
            found.append((start, end, text.original[start:end] + ".forward"))
        return found

    def _called(self, call: str) -> str:
        """The call of the step; without its phase the forward part alone, as it was."""
        phase = self.plan.phase
        if phase is None:
            return call
        indent = " " * self.plan.call.col_offset
        test = self._test(phase)
        spans = [(part, self.text.span(part)) for part in self.plan.forward]
        forward = [self._dedented(part, self.text.original[slice(*span)]) for part, span in spans]
        inner = textwrap.indent("\n".join(forward), indent + _STEP)
        return f"if {test}:\n{indent}{_STEP}{call}\n{indent}else:\n{inner}"

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

    def _given(self, path: str) -> str:
        """An input at the call, so that the compiler does not take a number for a constant."""
        plan = self.plan
        if path in plan.names.numbers | changing_bound(plan.clip, plan.loop):
            return f"_isograd_mutable({path})"
        is_varying = path in plan.carried | plan.names.varying
        return f"_isograd_varying({path})" if is_varying else path

    def _listed(self, inputs: dict[str, str]) -> str:
        """Inputs with what each is written as, a dictionary that is spread behind all others."""
        spread = self.plan.names.spread
        plain = [text for path, text in inputs.items() if path != spread]
        return ", ".join([*plain, *([f"**{inputs[spread]}"] if spread else [])])

    def _last_call(self) -> str:
        clip = self.plan.clip
        bound = "" if clip is None or is_number(clip.bound) else self._given(clip.bound)
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
        top: ast.AST = self.plan.loop
        while self.file.tree.parents[top] is not self.file.tree.module:
            top = self.file.tree.parents[top]
        is_script = self._home() is None
        assert isinstance(top, ast.stmt)
        if is_script and not isinstance(top, ast.ClassDef):
            first = top.lineno
        else:
            decorated = [part.lineno for part in getattr(top, "decorator_list", [])]
            first = min([top.lineno, *decorated])
        at = self._above_comments(first)
        return at, at, self._source() + "\n\n"

    def _home(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function in which the step is called."""
        loop = self.plan.loop
        return loop if isinstance(loop, ast.FunctionDef) else self.file.tree.function(loop)

    def _above_comments(self, line: int) -> int:
        """Before the comments that stand directly above a line."""
        lines = self.text.original.split("\n")
        while line > 1 and lines[line - 2].startswith("#"):
            line -= 1
        return self.text.line_start(line)

    def _source(self) -> str:
        plan = self.plan
        where = self._home()
        of = f"of `{where.name}`" if where is not None else "of this script"
        if where is not plan.loop:
            of = f"of the training loop {of}"
        taken = {*self.outputs, *plan.names.inputs.values(), *plan.names.objects.values()}
        taken |= read_by(*plan.computed, plan.loss)
        names = ("forward_fn", "gradient_fn", "gradients", "norm", "is_finite")
        self.forward, self.derived, self.gradients, self.norm, self.finite = (
            _unused(name, taken) for name in names
        )
        objects = ", ".join(plan.names.objects.values())
        parts = [
            "@_isograd_kept",
            f"def {self.make}({objects}):",
            f'    """The compiled step {of}."""',
        ]
        if plan.branches is not None:
            parts.append(f"    {self.scaler} = _isograd_scaler({self.scaler})")
        if plan.descent is not None:
            learning = f"{plan.names.objects[plan.descent.network]}.parameters()"
            parts.append(f"    {self.optimizer} = _isograd_descent({learning})")
        parts += [f"    {name} = {code}" for code, name in plan.names.lists.items()]
        parts += [f"    {name} = {code}" for name, code in self._counts().items()]
        networks = [plan.names.objects[path] for path in plan.same]
        parts += [f"    _isograd_same({self.optimizer}, {one}.parameters())" for one in networks]
        if plan.form is Form.HELD or plan.share is not Share.WHOLE:
            parts.append(f"    {self.optimizer}.hold()")
        parts += self._states()
        parts += ["", *self._forward(), "", *self._gradient(), "", *self._step()]
        if plan.form is Form.HELD:
            parts += ["", *self._last(), "", f"    return {self.step}, {self.last}"]
        else:
            parts += ["", f"    return {self.step}"]
        return "\n".join(parts) + "\n"

    def _states(self) -> list[str]:
        """What counts the calls of a network, which are one more where it is computed again."""
        plan = self.plan
        if not plan.again.statements:
            return []
        taken = {*self.outputs, *plan.names.inputs.values(), *plan.names.objects.values()}
        self.states, self.kept = _unused("states", taken), _unused("kept", taken)
        called = "".join(f"{plan.names.objects[path]}, " for path in plan.again.called)
        stepped = "".join(f"{one}, " for one in self.stepped)
        return [
            f"    _isograd_apart(({stepped.rstrip()}), ({called.rstrip()}))",
            f"    {self.states} = _isograd_states(({called.rstrip()}))",
        ]

    def _returned(self) -> list[str]:
        return [name for name in self.outputs if name != self.loss or self.scaler]

    def _forward(self) -> list[str]:
        plan = self.plan
        body = [self._moved(statement) for statement in plan.computed]
        loss = self._replaced(plan.loss)
        scaled = f"{self.scaler}.scaled({loss})" if self.scaler else loss
        returned = ", ".join([scaled, *self._returned()])
        lines = [f"def {self.forward}({', '.join(plan.names.inputs.values())}):"]
        for text in body:
            lines += [_STEP + line if line.strip() else "" for line in text.split("\n")]
        lines.append(f"{_STEP}return {returned}")
        return [_STEP + line if line else "" for line in lines]

    def _moved(self, statement: ast.stmt) -> str:
        return self._dedented(statement, self._replaced(statement))

    def _dedented(self, statement: ast.stmt, own: str) -> str:
        """A statement's text without the indentation of its place."""
        start = self.text.line_start(statement.lineno)
        before = self.text.original[start : self.text.span(statement)[0]]
        return textwrap.dedent(before + own) if not before.strip() else own

    def _replaced(self, node: ast.AST) -> str:
        """The text of a node as it was, with the names for what it reads from outside."""
        start, end = self.text.span(node)
        inside = []
        for part, name in self.plan.names.places:
            first, last = self.text.span(part)
            if start <= first and last <= end:
                inside.append((first, last, name))
        for one in self.plan.names.reported:
            for at, new in ((one.target, f", {one.name}"), (one.call.func, "_computed")):
                end_of = self.text.span(at)[1]
                inside += [(end_of, end_of, new)] if start <= end_of <= end else []
        for inner in ast.walk(node):
            if isinstance(inner, ast.AugAssign) and inner in self.plain:
                inside += self._written_out(inner)
        text = self.text.original[start:end]
        for first, last, name in sorted(set(inside), reverse=True):
            text = text[: first - start] + name + text[last - start :]
        return text

    def _written_out(self, statement: ast.AugAssign) -> list[tuple[int, int, str]]:
        """`x += y` as `x = x + (y)`.

        MindSpore 2.10 cannot compile a step that differentiates and returns what `+=` has changed.
        """
        _, start = self.text.span(statement.target)
        value, end = self.text.span(statement.value)
        between = self.text.original[start:value]
        operator, _, opened = between.partition("=")
        is_plain = isinstance(statement.value, (ast.Call, ast.Name, ast.Constant)) or "(" in opened
        name = ast.unparse(statement.target)
        left, right = ("", "") if is_plain else ("(", ")")
        new = f" = {name} {operator.strip()} {opened.strip()}{left}"
        return [(start, value, new), *([] if is_plain else [(end, end, right)])]

    def _gradient(self) -> list[str]:
        aux = ", has_aux=True" if self._returned() else ""
        learning = f"{self.optimizer}.parameters"
        if self.beside:
            parts = (f"*{one}.parameters" for one in (self.optimizer, *self.beside))
            learning = f"({', '.join(parts)})"
        call = f"_isograd_value_and_grad({self.forward}, None, {learning}{aux})"
        return [f"    {self.derived} = {call}"]

    def _step(self) -> list[str]:
        plan, returned = self.plan, self._returned()
        inputs = ", ".join(plan.names.inputs.values())
        first = self.loss if self.loss in self.outputs and not self.scaler else "_"
        if not self.outputs and not self.scaler:
            first = self._name_of_loss()  # a graph returns something: what who watches it reads
        value = f"({', '.join([first, *returned])})" if returned else first
        lines = ["@_isograd_jit", f"def {self.step}({self._listed(plan.names.inputs)}):"]
        if plan.again.statements:
            lines.append(f"    {self.kept} = _isograd_copied({self.states})")
        own = self.gradients
        lines.append(f"    {value}, {own} = {self.derived}({inputs})")
        if plan.again.statements:
            lines.append(f"    _isograd_restored({self.states}, {self.kept})")
        if self.averages:
            lines.append(f"    {own} = _isograd_averaged({own})")
        if plan.share is Share.FIRST:
            lines.append(f"    {self.optimizer}.replace_held({own})")
        elif plan.form is Form.HELD or plan.share is Share.NEXT:
            lines.append(f"    {self.optimizer}.accumulate({own})")
        else:
            if plan.share is Share.LAST:
                lines.append(f"    {own} = {self.optimizer}.with_held({own})")
            lines += self._taken(own)
        last = f"{own}[0]" if first == "_" else first
        given = [*self.outputs, self.norm] if plan.keeps_norm else self.outputs
        lines.append(f"    return {', '.join(given) or last}")
        return [_STEP + line for line in lines]

    def _name_of_loss(self) -> str:
        names = self.plan.names
        taken = {*names.inputs.values(), *names.objects.values(), self.optimizer, self.scaler}
        return _unused(self.loss if self.loss.isidentifier() else "loss", taken)

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
        return [_STEP + line for line in lines]


def _unused(name: str, taken: set[str]) -> str:
    """A name that is free, which is taken from now on."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found)
    return found

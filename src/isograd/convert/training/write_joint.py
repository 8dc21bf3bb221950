"""Two steps of a round written as one, which computes once what both read."""

from __future__ import annotations

import dataclasses

from isograd.convert.file import FileEdit
from isograd.convert.training.changes import paths_read
from isograd.convert.training.joints import Joint
from isograd.convert.training.write import STEP, Writer, unused


class JointWriter(Writer):
    """The edits of a joint's loop: it writes the first step and, in its place, both.

    second: what knows the names of the second step.  inputs: of both steps, by their names in the
    step, with what is given for each.  given_names: the second's names there, by its paths.
    renamed: the second's results that get their names where it has stood, with other ones before.
    """

    def __init__(
        self, file: FileEdit, joint: Joint, taken: set[str], own: set[str], averages: bool
    ) -> None:
        is_renewed = joint.first.is_renewed or joint.second.is_renewed
        first = dataclasses.replace(joint.first, is_renewed=is_renewed)
        super().__init__(file, first, taken, own, averages)
        self.joint = joint
        self.second = Writer(file, joint.second, {*taken}, {*own}, averages)
        self.outputs = [name for name in self.outputs if name not in joint.unread]
        self.inputs = {name: self.given(path) for path, name in first.names.inputs.items()}
        self.given_names: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        self._name_the_second(own)

    def _name_the_second(self, own: set[str]) -> None:
        """Names for what the second step reads and returns; own: those of the loop."""
        first, second = self.plan, self.joint.second
        inside = {*own, *self.used(), *self.second.used()}
        moved = {one.path for one in self.joint.moved}
        for path, name in second.names.inputs.items():
            if path in first.names.inputs and path not in moved:
                self.given_names[path] = first.names.inputs[path]
                continue
            is_free = path not in moved and name not in self.used()
            new = self.given_names[path] = name if is_free else unused(name, inside)
            self.inputs[new] = self.second.given(path, new if path in moved else path)
            own.add(new)
        for name in self.second.outputs:
            if name in {*self.used(), *self.joint.between}:
                self.renamed[name] = unused(name, inside)
                own.add(self.renamed[name])

    @property
    def agrees(self) -> bool:
        """Whether each object has one name, and no other object or input has it."""
        first, second = self.plan.names.objects, self.joint.second.names.objects
        both = {**first, **second}
        names = [*both.values(), *self.inputs]
        return len({*names}) == len(names) and all(both[path] == first[path] for path in first)

    def objects(self) -> dict[str, str]:
        """The objects that both steps are made of."""
        return {**self.plan.names.objects, **self.joint.second.names.objects}

    def returned(self) -> list[str]:
        """The results of the first forward part beside its loss, and without what is shared."""
        return [name for name in super().returned() if name not in self.joint.shared]

    def edits(self) -> list[tuple[int, int, str]]:
        """Replacements by their places in the text."""
        found = super().edits()
        found += self.second.replaced([f"{name} = {own}" for name, own in self.renamed.items()])
        for one in self.joint.moved:
            if one.value is not None:
                found.append((*self.text.span(one.value), self.given_names[one.path]))
        return found

    def lines(self) -> list[str]:
        """The call of both steps, behind what is computed for the second one."""
        before = [f"{self.given_names[one.path]} = {one.code}" for one in self.joint.moved]
        call = f"{self.step}({', '.join(self.inputs.values())})"
        results = ", ".join(self._results())
        return [*before, f"{results} = {call}" if results else call]

    def _results(self) -> list[str]:
        return [*self.outputs, *(self.renamed.get(name, name) for name in self.second.outputs)]

    def body(self) -> list[str]:
        """What stands in the function that makes the step, but for its return."""
        joint, second = self.joint, self.second
        again = joint.second.again.statements
        taken = {*self.used(), *second.used(), *self.inputs, *self._results()}
        self.name_parts(taken)
        second.name_parts(taken)
        own = ("shared_fn", "pull_back", "found", "learns_beside", "weights")
        self.share, self.back, self.found, self.learns, self.weights = (
            unused(name, taken) for name in own
        )
        names = joint.second.names.inputs
        of_share = [name for path, name in names.items() if path in paths_read(*again)]
        rest = [s for s in self.plan.forward if s not in again]
        return [
            *self.checked(), *second.checked(), second.apart(), "",
            *second.function(self.share, again, of_share, joint.shared), "",
            *self.forward_part(rest, [*joint.shared, *self._read_by_first().values()]), "",
            *second.forward_part(
                joint.second.forward, [*joint.shared, *(names[p] for p in self._read_by_second())]
            ), "",
            *self.gradient(), *self._second_gradient(), "", *self._step_of_both(),
        ]  # fmt: skip

    def _read_by_first(self) -> dict[str, str]:
        """The inputs of the first forward part without what is shared."""
        again = self.joint.second.again.statements
        read = paths_read(*(s for s in self.plan.forward if s not in again), self.plan.loss)
        return {path: name for path, name in self.plan.names.inputs.items() if path in read}

    def _read_by_second(self) -> list[str]:
        read = paths_read(*self.joint.second.forward, self.joint.second.loss)
        return [path for path in self.joint.second.names.inputs if path in read]

    def _second_gradient(self) -> list[str]:
        """Gradients of what is shared, and of weights that the second loss reads beside it."""
        count, second = len(self.joint.shared), self.second
        places = "0" if count == 1 else str(tuple(range(count)))
        learns = "True"
        if self.joint.beside is not None:
            names = self.joint.second.names.objects
            called = ", ".join(names[path] for path in self.joint.beside)
            one = "," if len(self.joint.beside) == 1 else ""
            learns = f"_isograd_learns({second.optimizer}, ({called}{one}))"
        return [
            f"    {self.learns} = {learns}",
            f"    {self.weights} = {second.optimizer}.parameters if {self.learns} else None",
            *second.gradient(places, self.weights),
        ]

    def _step_of_both(self) -> list[str]:
        joint, second = self.joint, self.second
        again = paths_read(*joint.second.again.statements)
        shared = ", ".join(joint.shared)
        target = f"({shared})" if len(joint.shared) > 1 else shared
        of_share = [own for path, own in self.given_names.items() if path in again]
        weights = f"weights={second.optimizer}.parameters"
        first_given = ", ".join([shared, *self._read_by_first().values()])
        second_given = ", ".join(
            [shared, *(self.given_names[path] for path in self._read_by_second())]
        )
        gradients, results = second.gradients, self._results()
        value = self.value({}, must_be_named=not results)
        lines = [
            "@_isograd_jit",
            f"def {self.step}({', '.join(self.inputs)}):",
            f"    {target}, {self.back} = _isograd_vjp({self.share}, {', '.join(of_share)}, "
            f"{weights})",
            f"    {value}, {self.gradients} = {self.derived}({first_given})",
            *self.update(),
            f"    {second.value(self.renamed)}, {self.found} = {second.derived}({second_given})",
            f"    {gradients} = _isograd_pulled({self.back}, {self.found}, {self.learns})",
            *second.update(),
            f"    return {', '.join(results) or value}",
        ]
        return [STEP + line for line in lines]

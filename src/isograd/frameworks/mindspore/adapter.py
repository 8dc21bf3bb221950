"""The MindSpore side of a verification: builds, records, replays and trains a network."""

from __future__ import annotations

import dataclasses
from typing import Any

import mindspore as ms
from mindspore import nn

from isograd.edits import SourceEdit
from isograd.errors import UserCodeError
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    DropoutSite,
    Port,
    PortFix,
    Tensors,
)
from isograd.frameworks.capabilities import DrawsMasks, EditsSource, MendsOptimizer
from isograd.frameworks.common import (
    Arguments,
    reset_network,
    split_optimizer,
)
from isograd.frameworks.mindspore.convert import from_value, to_value
from isograd.frameworks.mindspore.differentiate import differentiate
from isograd.frameworks.mindspore.kept import detach_kept, kept_state
from isograd.frameworks.mindspore.known_errors import advice_for
from isograd.frameworks.mindspore.neutral import (
    MASKING,
    dropout_cells,
    keep_scale,
    measure_dropout,
    neutral_chance,
    rate_of,
)
from isograd.frameworks.mindspore.optimizers import (
    MendedOptimizer,
    Mending,
    Noted,
    constructing,
    read_mending,
    setting_edits,
)
from isograd.frameworks.mindspore.passes import MindSporePasses
from isograd.frameworks.mindspore.rebuild import rebuilt
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorKey, TensorValue


class MindSporeFramework(MindSporePasses, Port, DrawsMasks, EditsSource, MendsOptimizer):
    """Drives one MindSpore network in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._optimizer: Any = None
        self._schedulers: list[Any] = []
        self._before_training: Tensors | None = None
        self._kept = kept_state(())
        self._mending: Mending | None = None
        self._untouched: set[str] = set()
        self._made = Noted()

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        assert self._spec is not None
        assert self._spec.optimizer is not None
        if self._before_training is None:
            self._before_training = self.state()
            self._kept = kept_state(self._cells.values())
        else:
            self._kept.put_back()
        self._model.set_train(True)
        function = load_callable(self._spec.optimizer, self._spec.folder, "[port] optimizer")
        making = constructing(self._mending, self._parameters)
        with user_code(f"the optimizer {self._spec.optimizer}"), making as noted:
            self._optimizer, self._schedulers = split_optimizer(function(self._model))
        self._made = noted
        if self._mending is not None:
            self._optimizer = MendedOptimizer(self._optimizer, self._mending, self._parameters)
        return tuple(self._updated_names())

    @property
    def optimizer_line(self) -> str | None:
        """``file:line`` of the user's code that made the optimizer last."""
        return self._made.line

    @property
    def optimizer_kind(self) -> str:
        """MindSpore's class of the optimizer that was made last, as `nn.Adam`."""
        return self._made.name

    def optimizer_edits(self, settings: dict[str, Any]) -> tuple[SourceEdit, ...]:
        """The edits that give the optimizer these settings, by the fields of a rule."""
        return setting_edits(self._made, settings)

    def mend_optimizer(self, mending: dict[str, Any]) -> None:
        """From the next `start_training` the port's optimizer is changed so; {} ends it."""
        self._mending = read_mending(mending)

    def _updated_names(self) -> list[str]:
        names = {id(p): n for n, p in reversed(self._parameters.items())}
        parameters = getattr(self._optimizer, "parameters", None)
        if parameters is None or callable(parameters):
            parameters = self._model.trainable_params()
        found = []
        for parameter in parameters:
            if id(parameter) not in names:
                raise UserCodeError(
                    f"the optimizer updates {parameter.name!r}, which the network does not hold",
                    "Give it the parameters of the network that the callable was given.",
                )
            found.append(names[id(parameter)])
        return found

    def end_training(self) -> None:
        """Give back the state from before the training."""
        if self._before_training is not None:
            self.load_state(self._before_training)
            self._kept.put_back()
        self._before_training, self._optimizer = None, None

    def train_step(
        self,
        track: str,
        state: Tensors | None,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
        gradients: Tensors | None = None,
        *,
        lent: bool = False,
    ) -> Tensors:
        if state is not None:
            self.load_state(state)
        results: Tensors = {}
        names = self._updated_names()
        weights = [self._parameters[n] for n in names]
        if gradients is None:
            reset_network(self._spec, self._model, "port")
            with (
                neutral_chance(),
                user_code("a training step of the MindSpore network", advice_for),
            ):
                arguments = Arguments(inputs)
                positional, keywords = arguments.put(map(from_value, arguments.tensors.values()))

                def run() -> Any:
                    return self._loss_of(self._model(*positional, **keywords), targets)

                loss, _, found = differentiate(run, [], weights)
                found = [
                    self._no_gradient(p) if n in self._untouched and not g.any() else g
                    for n, p, g in zip(names, weights, found, strict=True)
                ]
            detach_kept(self._cells.values())
            results["loss"] = to_value(loss)
        else:
            found = [
                from_value(gradients[TensorKey.parameter(n).gradient], p.dtype)
                if TensorKey.parameter(n).gradient in gradients
                else self._no_gradient(p)
                for n, p in zip(names, weights, strict=True)
            ]
        with user_code("the optimizer's step"):
            stepper = self._optimizer if callable(self._optimizer) else self._optimizer.step
            stepper(tuple(found))
            for scheduler in self._schedulers:
                scheduler.step()
        return results | {f"state.{n}": v for n, v in self.state().items()}

    def leave_untouched(self, names: list[str]) -> None:
        """The reference computes no gradient for these parameters."""
        self._untouched = set(names)

    def _no_gradient(self, parameter: Any) -> Any:
        """What the optimizer gets for a parameter that the loss does not depend on.

        One with torch's interface reads gradients from the parameters, where there is none then;
        MindSpore's own get zeros, by which they decay weights and move on momentum.
        """
        return None if hasattr(self._optimizer, "zero_grad") else ms.ops.zeros_like(parameter)

    def dropout_sites(
        self, mode: str, seed: int = 0, fixes: tuple[PortFix, ...] = ()
    ) -> tuple[DropoutSite, ...]:
        kinds = dropout_cells()
        known: dict[Any, DropoutSite] = {}
        sites: list[DropoutSite] = []
        with self._restoring(mode, None, seed), rebuilt(self._cells, self._built, fixes):
            for site in self._dropouts:
                cell = self._cells[site.module]
                if isinstance(cell, kinds):
                    dropout: Any = cell
                    alike = (type(cell), rate_of(cell), dropout.training)
                    if alike not in known:
                        known[alike] = measure_dropout(site.module, dropout, 0)
                    site = dataclasses.replace(known[alike], module=site.module)
                layer = self._library_layer(site.module)
                if layer and sites and sites[-1].module == layer:
                    continue  # a stacked RNN drops between all its layers with one probability
                where = None if layer else site.where
                sites.append(dataclasses.replace(site, module=layer or site.module, where=where))
        return tuple(sites)

    def draws(self) -> tuple[str, ...]:
        return self._drawn

    def draws_by_hand(self) -> bool:
        return not MASKING.isdisjoint(self._drawn)

    def keep_scale(self, keeps: bool) -> None:
        keep_scale(keeps)

    def _library_layer(self, name: str) -> str:
        """The outermost layer of the library that this cell is a part of, if it is one."""
        parts = name.split(".")
        for count in range(1, len(parts)):
            cell = self._cells.get(".".join(parts[:count]))
            library = cell is not None and type(cell).__module__.startswith("mindspore.")
            if library and not isinstance(cell, (nn.SequentialCell, nn.CellList)):
                return ".".join(parts[:count])
        return ""

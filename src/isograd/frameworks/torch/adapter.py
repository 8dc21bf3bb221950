"""The torch side of a verification: builds, records, replays and trains a network."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from isograd.errors import UserCodeError
from isograd.frameworks.base import (
    NATIVE,
    Arithmetic,
    DropoutSite,
    Tensors,
)
from isograd.frameworks.capabilities import (
    BorrowsParameters,
    Diagnosable,
    DrawsMasks,
    EmptiesTracks,
    ReplaysRules,
)
from isograd.frameworks.common import (
    Arguments,
    reset_network,
    split_optimizer,
)
from isograd.frameworks.rules import Rule, rule_from
from isograd.frameworks.torch.arithmetic import computing
from isograd.frameworks.torch.constant_draws import MASKING
from isograd.frameworks.torch.convert import from_value, to_value
from isograd.frameworks.torch.interventions import intervening
from isograd.frameworks.torch.kept import detach_kept
from isograd.frameworks.torch.network import restoring
from isograd.frameworks.torch.neutral import measure_dropout, neutral_chance
from isograd.frameworks.torch.optimizers import RuleSteps, UpdateLog, inner_optimizer
from isograd.frameworks.torch.passes import TorchPasses
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorKey, TensorValue


@dataclass
class _Track:
    """A copy of the network in training with its own optimizer."""

    model: nn.Module
    optimizer: Any
    schedulers: list[Any]
    arithmetic: Arithmetic
    names: dict[int, str] = field(default_factory=dict)
    log: UpdateLog | None = None
    granted: RuleSteps | None = None
    emptied: dict[nn.Parameter, torch.Size] = field(default_factory=dict)

    def empty(self, names: Collection[str]) -> None:
        """Give back the memory of parameters that the next step is given anew.

        A large network's tracks hold seven copies of it beside each optimizer's state.
        """
        held = Counter(p.untyped_storage().data_ptr() for p in self.model.parameters())
        for name, parameter in self.model.named_parameters():
            is_alone = held[parameter.untyped_storage().data_ptr()] == 1
            if name in names and is_alone and parameter.numel():
                self.emptied[parameter] = parameter.shape
                parameter.data = parameter.new_empty(0)

    def fill(self) -> None:
        """Take the memory again; its values are to be loaded."""
        for parameter, shape in self.emptied.items():
            parameter.data = parameter.new_empty(shape)
        self.emptied.clear()


class TorchFramework(
    TorchPasses, Diagnosable, BorrowsParameters, DrawsMasks, EmptiesTracks, ReplaysRules
):
    """Drives one torch network in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._tracks: dict[str, _Track] = {}
        self._log: UpdateLog | None = None
        self._granted_rules: dict[str, Rule] = {}

    def start_training(self, track: str, arithmetic: Arithmetic = NATIVE) -> tuple[str, ...]:
        assert self._spec is not None
        assert self._spec.optimizer is not None
        self._wide = None  # made again where a pass needs it
        self._known_modules.clear()
        model = self._copy_of_model(arithmetic.float64)
        model.train()
        function = load_callable(self._spec.optimizer, self._spec.folder, "[reference] optimizer")
        with user_code(f"the optimizer {self._spec.optimizer}"):
            optimizer, schedulers = split_optimizer(function(model))
        names = {id(p): n for n, p in model.named_parameters()}
        run = _Track(model, optimizer, schedulers, arithmetic, names)
        if self._granted_rules and track != "native":
            run.granted = RuleSteps(model, optimizer, self._granted_rules)
        self._tracks[track] = run
        groups = getattr(inner_optimizer(optimizer) or optimizer, "param_groups", [])
        updated = {id(p) for group in groups for p in group["params"]}
        foreign = updated - names.keys()
        if foreign:
            raise UserCodeError(
                f"the optimizer updates {len(foreign)} parameters that the network does not hold",
                "Give it the parameters of the network that the callable was given.",
            )
        return tuple(name for key, name in names.items() if key in updated)

    def end_training(self) -> None:
        """Drop all tracks and their memory."""
        self._tracks.clear()

    def empty_track(self, track: str, names: Collection[str]) -> None:
        """Give back the memory of these parameters until the track's next step, with a state."""
        self._tracks[track].empty(names)

    def watch_update(self, track: str, indices: Tensors) -> None:
        """Note these elements of each parameter when gradients are fed to this track."""
        run = self._tracks[track]
        run.log = self._log = UpdateLog(run.model, run.optimizer, indices)

    def update_outline(self) -> dict[str, Any]:
        """What the watched optimizer does, by parameter."""
        return self._log.outline() if self._log is not None else {}

    def update_slices(self, names: list[str]) -> Tensors:
        """The watched elements of these parameters and of their gradients."""
        return self._log.slices(names) if self._log is not None else {}

    def measure_rules(
        self,
        rules: dict[str, dict[str, Any]],
        variants: list[Arithmetic],
        keep: bool,
        dtype: str,
    ) -> Tensors:
        """Other rules on the watched elements, with their envelope."""
        assert self._log is not None
        return self._log.measure(rules, variants, self.floors, keep, dtype)

    def grant_rules(self, rules: dict[str, dict[str, Any]]) -> None:
        """From the next `start_training` these parameters follow these rules; drops the log."""
        self._granted_rules = {name: rule_from(plain) for name, plain in rules.items()}
        self._log = None

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
        run = self._tracks[track]
        assert state is not None or not run.emptied, f"{track} was emptied and is given no state"
        run.fill()
        if state is not None:
            self._load(run.model, state)
        results: Tensors = {}
        run.model.zero_grad(set_to_none=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(neutral_chance(run.model.modules(), None, self._scaled))
            stack.enter_context(computing(run.arithmetic, self.floors))
            if gradients is None:
                results["loss"] = self._descend(run, inputs, targets)
                if self.interventions:
                    _fill_gradients(run.model)
            else:
                for parameter in run.model.parameters():
                    key = TensorKey.parameter(run.names[id(parameter)]).gradient
                    if key in gradients and parameter.requires_grad:
                        parameter.grad = from_value(gradients[key], parameter.dtype)
            for name, parameter in run.model.named_parameters():
                if parameter.grad is not None and gradients is None and track == "native":
                    results[TensorKey.parameter(name).gradient] = to_value(parameter.grad)
            with contextlib.ExitStack() as watching, user_code("the optimizer's step"):
                if run.log is not None and gradients is not None:
                    watching.enter_context(run.log.step())
                if run.granted is not None:
                    watching.enter_context(run.granted.step())
                run.optimizer.step()
                watching.close()
                for scheduler in run.schedulers:
                    scheduler.step()
        for name, tensor in self._named_tensors(run.model):
            results[f"state.{name}"] = to_value(tensor, lent=lent)
        run.model.zero_grad(set_to_none=True)
        return results

    def _descend(
        self, run: _Track, inputs: dict[str, TensorValue], targets: list[TensorValue]
    ) -> TensorValue:
        arguments = Arguments(inputs)
        positional, keywords = arguments.put(
            self._leaf(value, run.arithmetic, i, False)
            for i, value in enumerate(arguments.tensors.values())
        )
        reset_network(self._spec, run.model, "reference")
        changed = intervening(run.model, self.interventions)
        with changed, user_code("a training step of the torch network"):
            loss = self._loss_of(run.model(*positional, **keywords), targets)
            if loss.requires_grad:  # else no parameter reaches it
                loss.sum().backward()  # type: ignore[no-untyped-call]
        detach_kept(run.model)
        return to_value(loss)

    def dropout_sites(self, mode: str, seed: int = 0) -> tuple[DropoutSite, ...]:
        modules = dict(self._model.named_modules())
        known: dict[Any, DropoutSite] = {}
        sites: list[DropoutSite] = []
        with restoring(self._model, mode):
            for site in self._dropouts:
                module = modules[site.module]
                if isinstance(module, nn.modules.dropout._DropoutNd):
                    alike = (type(module), module.p, module.training)
                    if alike not in known:
                        known[alike] = measure_dropout(site.module, module, 0, seed)
                    site = dataclasses.replace(known[alike], module=site.module)
                sites.append(site)
        return tuple(sites)

    def draws(self) -> tuple[str, ...]:
        return self._drawn

    def draws_by_hand(self) -> bool:
        return not MASKING.isdisjoint(self._drawn)

    def keep_scale(self, keeps: bool) -> None:
        self._scaled = keeps


def _fill_gradients(model: Any) -> None:
    """Zeros where a granted cause stops every gradient: other frameworks yield zeros there."""
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = parameter.new_zeros(parameter.shape)

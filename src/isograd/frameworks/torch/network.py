"""A torch network in this process: built, described, loaded, and copied in float64."""

from __future__ import annotations

import contextlib
import inspect
import os
import platform
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from isograd.errors import CaseError, UserCodeError
from isograd.frameworks.base import (
    Arithmetic,
    DropoutSite,
    Floors,
    Intervention,
    MaskDraw,
    ModuleInfo,
    ParameterInfo,
    SideSpec,
    Structure,
    Tensors,
)
from isograd.frameworks.common import (
    building_line,
    load_callables,
    plain_of,
    with_tensors,
    yielded,
)
from isograd.frameworks.instructions import words_of_limit
from isograd.frameworks.torch.arithmetic import with_input_noise
from isograd.frameworks.torch.convert import from_value, to_value
from isograd.frameworks.torch.copying import copied
from isograd.frameworks.torch.float64 import widened
from isograd.frameworks.torch.interventions import Interventions, intervening
from isograd.frameworks.torch.kept import kept_state
from isograd.frameworks.torch.observe import (
    Call,
)
from isograd.frameworks.user_code import load_callable, user_code
from isograd.tensors import TensorValue


class TorchNetwork:
    """One torch network with its state; `TorchPasses` runs it."""

    name = "torch"

    def __init__(self) -> None:
        self._spec: SideSpec | None = None
        self._model = nn.Module()
        self._wide: nn.Module | None = None
        self._calls: list[Call] = []
        self._mode = "train"
        #: Whether each module trained in the recorded pass, by its name.
        self._training: dict[str, bool] = {}
        self._known_modules: dict[int, dict[str, nn.Module]] = {}
        self._dropouts: list[DropoutSite] = []
        self._borrowed: dict[str, tuple[str, ...]] = {}
        self._drawn: tuple[str, ...] = ()
        self._masks: tuple[MaskDraw, ...] = ()
        #: The seed with which replays draw as the network does; None: they draw neutrally.
        self._chance_seed = 0
        self._live: frozenset[str] = frozenset()
        self._scaled = self._reports_buffers = False
        self._where: dict[int, str | None] = {}
        self.floors: Floors = {}
        #: What is computed otherwise, in every pass, until it is taken back (`Service`).
        self.interventions: tuple[Intervention, ...] = ()
        self.loss_interventions: tuple[Intervention, ...] = ()

    def describe(self) -> dict[str, str]:
        return {
            "framework": self.name,
            "framework_version": str(torch.__version__),
            "python_version": platform.python_version(),
            "numpy_version": np.__version__,
            "changed": "dropout passes its input; random draws are constants"
            + words_of_limit(os.environ),
            "device": f"CPU ({torch.get_num_threads()} threads)",
        }

    def build(self, spec: SideSpec, seed: int) -> Structure:
        self._spec = spec
        builder = load_callables(spec, "reference")
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - the user's network may draw from it
        with user_code(f"the model callable {spec.model}"), self._noting_lines():
            model = builder(**spec.model_kwargs)
        if not isinstance(model, nn.Module):
            raise CaseError(
                f"{spec.model} returned a {type(model).__name__}, not a torch.nn.Module",
                "Return the network.",
            )
        if inspect.isgeneratorfunction(type(model).forward):
            model.register_forward_hook(lambda _, args, output: yielded(output))
        self._model = model
        return self._structure()

    @contextlib.contextmanager
    def _noting_lines(self) -> Iterator[None]:
        original = nn.Module.__init__
        where = self._where

        def noting(module: nn.Module, /, *args: Any, **kwargs: Any) -> None:
            where[id(module)] = building_line(module)
            original(module, *args, **kwargs)

        nn.Module.__init__ = noting  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            nn.Module.__init__ = original  # type: ignore[method-assign]

    def _structure(self) -> Structure:
        modules = tuple(
            ModuleInfo(
                name,
                type(module).__name__,
                type(module).__module__.startswith("torch."),
                module.extra_repr(),
                self._where.get(id(module)),
                _arguments(module),
            )
            for name, module in self._model.named_modules()
        )
        return Structure(self.name, modules, tuple(self._parameter_infos()))

    def _parameter_infos(self) -> Iterator[ParameterInfo]:
        first: dict[int, str] = {}
        for name, tensor in self._named_tensors(self._model, duplicates=True):
            owner, _, attribute = name.rpartition(".")
            yield ParameterInfo(
                name,
                owner,
                attribute,
                tuple(tensor.shape),
                str(tensor.dtype).removeprefix("torch."),
                tensor.requires_grad,
                not isinstance(tensor, nn.Parameter),
                first.get(id(tensor)),
            )
            first.setdefault(id(tensor), name)

    @staticmethod
    def _named_tensors(
        model: nn.Module, duplicates: bool = False
    ) -> Iterator[tuple[str, torch.Tensor]]:
        yield from model.named_parameters(remove_duplicate=not duplicates)
        yield from model.named_buffers(remove_duplicate=not duplicates)

    def state(self) -> Tensors:
        return {name: to_value(t) for name, t in self._named_tensors(self._model)}

    def load_state(self, tensors: Tensors) -> None:
        self._load(self._model, tensors)
        if self._wide is not None:
            self._load(self._wide, tensors)

    def _load(self, model: nn.Module, tensors: Tensors) -> None:
        targets = dict(self._named_tensors(model, duplicates=True))
        with torch.no_grad():
            for name, value in tensors.items():
                if name not in targets or tuple(targets[name].shape) != value.shape:
                    raise CaseError(
                        f"the torch network has no tensor {name!r} of shape {value.shape}",
                        "Correct [weights].rename.",
                    )
                targets[name].copy_(from_value(value, lent=True))

    def _model_for(self, arithmetic: Arithmetic) -> nn.Module:
        if not arithmetic.float64:
            return self._model
        if self._wide is None:
            self._wide = self._copy_of_model(wide=True)
        return self._wide

    def _modules_of(self, model: nn.Module) -> dict[str, nn.Module]:
        """The modules by name as of the recorded pass; walking them costs as much as a replay."""
        if id(model) not in self._known_modules:
            self._known_modules[id(model)] = dict(model.named_modules())
        return self._known_modules[id(model)]

    def _copy_of_model(self, wide: bool) -> nn.Module:
        self._forget_gradients()
        try:
            model = copied(self._model)
        except Exception:  # tensors that are no leaves cannot be copied: build it anew
            assert self._spec is not None
            builder = load_callable(self._spec.model, self._spec.folder, "[reference] model")
            model = builder(**self._spec.model_kwargs)
            self._load(model, self.state())
        if wide:
            _widen(model)
        return model

    def _forget_gradients(self) -> None:
        for parameter in self._model.parameters():
            parameter.grad = None

    def _loss_of(
        self, output: Any, targets: list[TensorValue], watcher: Interventions | None = None
    ) -> torch.Tensor:
        assert self._spec is not None
        assert self._spec.loss is not None
        function = load_callable(self._spec.loss, self._spec.folder, "[reference] loss")
        given = with_tensors(list(targets), self._target)
        if watcher is not None:
            for position, target in enumerate(given):
                if isinstance(target, torch.Tensor):
                    watcher.know(target, f"target.{position}")
        changed = intervening(None, self.loss_interventions)
        watching = watcher or contextlib.nullcontext()
        with user_code(f"the loss {self._spec.loss}"), changed, watching:
            loss = function(output, *given)
        if not isinstance(loss, torch.Tensor):
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a {type(loss).__name__}, not a tensor",
                "Return the scalar loss.",
            )
        # A hypothesis may say that the port's loss is not reduced.
        if loss.numel() != 1 and not self.loss_interventions:
            raise UserCodeError(
                f"the loss {self._spec.loss} returned a tensor of shape {tuple(loss.shape)}, not "
                "a scalar",
                "Return the scalar loss.",
            )
        return loss

    @staticmethod
    def _target(value: TensorValue) -> torch.Tensor:
        tensor = from_value(value)
        wide = tensor.is_floating_point() and torch.get_default_dtype() is torch.float64
        return tensor.double() if wide else tensor

    @staticmethod
    def _leaf(
        value: TensorValue | torch.Tensor, arithmetic: Arithmetic, position: int, gradient: bool
    ) -> torch.Tensor:
        tensor = from_value(value, lent=True) if isinstance(value, TensorValue) else value
        tensor = tensor.detach().clone()
        if arithmetic.input_noise:
            tensor = with_input_noise(tensor, arithmetic, position)
        if arithmetic.float64:
            tensor = widened(tensor)
        return tensor.requires_grad_(gradient and tensor.is_floating_point())


def _arguments(module: nn.Module) -> dict[str, Any]:
    """What a module of torch was built with: its attributes of the constructor's names."""
    if not type(module).__module__.startswith("torch."):
        return {}
    names = inspect.signature(type(module).__init__).parameters
    return plain_of({name: getattr(module, name) for name in names if hasattr(module, name)})


def _widen(model: nn.Module) -> None:
    # As model.double(), which leaves complex tensors as they are; torch does not type _apply.
    model._apply(widened)  # type: ignore[no-untyped-call]
    for module in model.modules():
        for key, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                module.__dict__[key] = widened(value)


def fresh(leaf: torch.Tensor) -> torch.Tensor:
    """A copy that in-place operators may change."""
    return leaf.clone()


@contextlib.contextmanager
def restoring(model: nn.Module, mode: str) -> Iterator[None]:
    """Set the mode, and give back modes, the network's state and the random state afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    with restoring_state(model):
        model.train(mode == "train")
        try:
            yield
        finally:
            for module, training in modes:
                module.training = training


@contextlib.contextmanager
def in_modes(modules: Mapping[str, nn.Module], training: Mapping[str, bool]) -> Iterator[None]:
    """Set each module's mode by its name, without asking the network, and give them back."""
    before = {name: module.training for name, module in modules.items()}
    _set_training(modules, training)
    try:
        yield
    finally:
        _set_training(modules, before)


def _set_training(modules: Mapping[str, nn.Module], training: Mapping[str, bool]) -> None:
    for name, module in modules.items():
        wanted = training.get(name, module.training)
        if module.training is not wanted:
            # Past nn.Module.__setattr__, which looks through parameters, buffers and modules.
            object.__setattr__(module, "training", wanted)


@contextlib.contextmanager
def restoring_state(restored: nn.Module, seed: int = 0) -> Iterator[None]:
    """Give back a module's state and the random state afterwards.

    seed: of the random numbers until then.

    State is what does not learn: buffers, also where the forward pass binds new ones, and
    Parameters without gradient, such as a momentum encoder's.
    """
    kept = kept_state(restored)
    places = [module._buffers for module in restored.modules()]
    bound = [(place, {k: v for k, v in place.items() if v is not None}) for place in places]
    data = [(p, p.data) for p in restored.parameters() if not p.requires_grad]
    still = [b for _, tensors in bound for b in tensors.values()] + [own for _, own in data]
    before = [(tensor, tensor.detach().clone()) for tensor in still]
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which formats a stack trace for CUDA at every call.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch's own
            torch.cuda.manual_seed_all(seed)
        try:
            yield
        finally:
            with torch.no_grad():
                kept.put_back()
                for place, tensors in bound:
                    place.update(tensors)
                for parameter, own in data:
                    parameter.data = own
                for tensor, values in before:
                    tensor.copy_(values)

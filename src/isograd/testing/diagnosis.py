"""Guarantees of what a framework may declare: `Diagnosable` as reference, `Port` as port."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isograd.errors import UserCodeError
from isograd.frameworks.base import (
    Framework,
    FunctionSite,
    Intervention,
    Operand,
    Port,
    PortFix,
    ReplayRequest,
    Tensors,
)
from isograd.frameworks.capabilities import Diagnosable, declares
from isograd.tensors import TensorValue, tensor_value
from isograd.testing.network import BATCH, FEATURES, ConformanceNetwork
from isograd.testing.values import assert_close, assert_same, call_of, children_of, differ

_EPS = 0.5


class DiagnosisGuarantees(ConformanceNetwork):
    """A reference shows the functions of its code, and computes some of them otherwise."""

    def test_sites_show_functions_with_their_arguments(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """Functions and arguments have torch's names; a tensor says where it comes from."""
        site = _norm_site(framework)
        assert site.arguments["eps"] == pytest.approx(1e-5)
        assert site.arguments["training"] is True
        assert _source(site.arguments["input"]) == "input.0"
        assert _source(site.arguments["weight"]) == "parameter.norm.weight"
        assert [one.shape for one in site.outputs] == [(BATCH, FEATURES)]

    def test_sites_refer_to_what_ran_before(self, passed: Tensors, framework: Framework) -> None:
        """A given result is the event of the module's call; events are numbered in order."""
        reference = _diagnosable(framework)
        pins = children_of(framework.calls(), 0)
        sites = reference.sites(ReplayRequest(0, pins, (), ((),) * len(pins)), True)
        assert [site.event for site in sites] == list(range(len(sites)))
        assert {site.place.module for site in sites if site.place.function == "module"} >= {
            "first",
            "twice",
            "tied",
        }
        for site in sites:
            assert len(site.values) == len(site.outputs)
            for operand in site.arguments.values():
                if isinstance(operand, Operand) and operand.source.startswith("event."):
                    assert int(operand.source.split(".")[1]) < site.event

    def test_an_intervention_changes_a_call_until_it_is_taken_back(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """What is computed otherwise moves replay and pass, and leaves no trace."""
        reference = _diagnosable(framework)
        request = ReplayRequest(call_of(framework.calls(), "norm"), (), (), ())
        before = framework.replay(request)
        reference.interventions = (_larger_eps(_norm_site(framework)),)
        try:
            assert differ(framework.replay(request)["output.0"], before["output.0"])
        finally:
            reference.interventions = ()
        assert_same(framework.replay(request), before)

    def test_an_intervention_moves_the_whole_pass(
        self,
        passed: Tensors,
        framework: Framework,
        inputs: dict[str, TensorValue],
        targets: list[TensorValue],
    ) -> None:
        """Modules behind the changed one get what it yields."""
        reference = _diagnosable(framework)
        reference.interventions = (_larger_eps(_norm_site(framework)),)
        try:
            found = framework.forward("train", inputs, targets)
        finally:
            reference.interventions = ()
        assert differ(found["output.0"], passed["output.0"])
        assert_same(framework.forward("train", inputs, targets, backward=True), passed)

    def test_the_loss_is_shown_and_changed_alone(
        self, passed: Tensors, framework: Framework, targets: list[TensorValue]
    ) -> None:
        """Functions of the loss have places of their own."""
        reference = _diagnosable(framework)
        before = framework.loss([None, None], targets)
        sites = reference.loss_sites([None, None], targets, False)
        place = next(site.place for site in sites if site.place.function == "mse_loss")
        reference.loss_interventions = (Intervention(place, lambda call, values: call.run() * 2.0),)
        try:
            found = framework.loss([None, None], targets)
        finally:
            reference.loss_interventions = ()
        assert differ(found["loss"], before["loss"])
        assert_same(framework.loss([None, None], targets), before)


class PortGuarantees(ConformanceNetwork):
    """A port is built otherwise for the time of one pass, to prove a cause."""

    def test_a_setting_is_changed_for_one_replay(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """A fix that torch's argument means acts in the replay that names it, and in no other."""
        port = _port(framework)
        fix = port.fix_for("norm", "batch_norm", "eps", _EPS)
        assert fix is not None
        request = ReplayRequest(call_of(framework.calls(), "norm"), (), (), ())
        before = framework.replay(request)
        found = port.replay(request, fixes=(fix,))
        assert differ(found["output.0"], before["output.0"])
        assert_same(framework.replay(request), before)
        again = port.fix_for("norm", "batch_norm", "eps", 1e-5)
        assert again is None or again.kind == "rebuild"
        text, _ = port.edit_text(fix)
        assert str(_EPS) in text

    @pytest.mark.parametrize(
        ("module", "argument"),
        [
            pytest.param("norm", "no_such_argument", id="an argument that the module lacks"),
            pytest.param("gate", "eps", id="a module of the user's"),
            pytest.param("nowhere", "eps", id="no module"),
        ],
    )
    def test_what_has_no_setting_has_no_fix(
        self, module: str, argument: str, passed: Tensors, framework: Framework
    ) -> None:
        """No fix is made up."""
        assert _port(framework).fix_for(module, "batch_norm", argument, _EPS) is None

    def test_a_fix_that_cannot_be_made_is_an_error(
        self, passed: Tensors, framework: Framework
    ) -> None:
        """The error leaves the port as it was."""
        port = _port(framework)
        request = ReplayRequest(call_of(framework.calls(), "norm"), (), (), ())
        before = framework.replay(request)
        fix = PortFix("rebuild", "nowhere", arguments={"eps": _EPS})
        with pytest.raises(UserCodeError):
            port.replay(request, fixes=(fix,))
        assert_same(framework.replay(request), before)

    def test_functions_of_the_loss_are_traced_with_results(
        self, passed: Tensors, framework: Framework, targets: list[TensorValue]
    ) -> None:
        """The last result of the loss is the loss."""
        events = _port(framework).trace_loss([None, None], targets)
        loss = framework.loss([None, None], targets)["loss"]
        last = tensor_value(np.reshape(events[-1].value.values, loss.shape))
        assert_close({"": last}, {"": loss}, self.tolerance)


def _norm_site(framework: Framework) -> FunctionSite:
    request = ReplayRequest(call_of(framework.calls(), "norm"), (), (), ())
    sites = _diagnosable(framework).sites(request, False)
    return next(site for site in sites if site.place.function == "batch_norm")


def _larger_eps(site: FunctionSite) -> Intervention:
    return Intervention(site.place, lambda call, values: call.run(**values), {"eps": _EPS})


def _source(operand: Any) -> str:
    assert isinstance(operand, Operand)
    return operand.source


def _diagnosable(framework: Framework) -> Diagnosable:
    found: object = framework
    if not declares(found, Diagnosable):
        pytest.skip("this framework does not show its functions")
    return found


def _port(framework: Framework) -> Port:
    found: object = framework
    if not declares(found, Port):
        pytest.skip("this framework only plays the reference")
    return found

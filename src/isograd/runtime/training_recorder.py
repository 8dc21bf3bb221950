"""Whether MindSpore's PyNative mode records what is computed, and what was asked of it last."""

from __future__ import annotations

from mindspore.common import api  # noqa: TID253


class _Asked:
    """What was asked last: MindSpore forgets it where an operator fails."""

    is_recording = False
    would_record = True


def record_gradients() -> None:
    """Record from here on what is computed, as torch does; `no_grad` stops it for a while."""
    _Asked.is_recording = True
    api._pynative_executor.set_grad_flag(True)


def record_again() -> None:
    """Go on as before an operator failed, which has MindSpore record nothing from there on."""
    api._pynative_executor.set_enable_grad(_Asked.would_record)
    if _Asked.is_recording and not is_in_backward():
        api._pynative_executor.set_grad_flag(True)


def is_in_backward() -> bool:
    """Whether the backward of a function with its own gradient runs; nothing is recorded there."""
    return bool(api._pynative_executor.get_current_autodiff_engine_id() != -1)


def is_grad_enabled() -> bool:
    """Whether what is computed is recorded."""
    executor = api._pynative_executor
    return bool(executor.enable_grad() and (executor.grad_flag() or not is_in_backward()))


#: MindSpore's two switches: whether it records, and whether it would; its backward turns off the
#: first, `no_grad` the second.
Switches = tuple[bool, bool]


def switched(mode: bool) -> Switches:
    """Record or not; the switches as they were."""
    executor = api._pynative_executor
    before = bool(executor.grad_flag()), bool(executor.enable_grad())
    set_switches((mode, mode))
    return before


def set_switches(switches: Switches) -> None:
    """Set both switches."""
    records, would_record = switches
    _Asked.would_record = would_record
    api._pynative_executor.set_enable_grad(would_record)
    if is_in_backward():
        api._pynative_executor.set_grad_flag(records)

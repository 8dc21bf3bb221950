"""Errors of operators where torch has them: in the `try` around the call that fails.

MindSpore computes later than it is called, so an error is raised by whatever reads a result first;
and its class is often another one than torch's RuntimeError.
"""

from __future__ import annotations

import sys
from typing import Any

from mindspore.common import api  # noqa: TID253

#: Of what class an operator's error is where torch's would be a RuntimeError.
_OF_OPERATORS = (RuntimeError, ValueError, TypeError, IndexError)
#: The text behind what MindSpore's operators say.
_STACK = "C++ Call Stack"


def computed(value: Any = None) -> Any:
    """Wait until all that was called is computed, so that its errors are raised here."""
    api._pynative_executor.sync()  # the public `runtime.synchronize` does nothing the first time
    return value


def errors_of(*kinds: type[BaseException]) -> tuple[type[BaseException], ...]:
    """What a clause that names RuntimeError catches: also operators' errors of other classes.

    It is asked while the exception is handled.  An error that other code raises is left as it is.
    """
    error = sys.exc_info()[1]
    if isinstance(error, _OF_OPERATORS) and _is_of_operator(error):
        return (*kinds, type(error))
    return kinds


def _is_of_operator(error: BaseException) -> bool:
    """Whether MindSpore has raised an error, and no code that it has called."""
    if _STACK in str(error):
        return True
    raised = error.__traceback__
    while raised is not None and raised.tb_next is not None:
        raised = raised.tb_next
    name = "" if raised is None else raised.tb_frame.f_globals.get("__name__", "")
    return str(name).partition(".")[0] == "mindspore"

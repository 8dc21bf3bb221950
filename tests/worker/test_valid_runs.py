"""A noisy run that the user's program refuses says nothing; the plain run must not be refused."""

from __future__ import annotations

import numpy as np
import pytest

from isograd.errors import UserCodeError
from isograd.frameworks.base import NATIVE, Arithmetic, Tensors
from isograd.tensors import tensor_value
from isograd.worker.services.passes import valid_runs

NOISY = (Arithmetic(operator_noise=True, seed=1), Arithmetic(operator_noise=True, seed=2))


def refusing(refused: Arithmetic) -> list[int]:
    """Seeds of the runs that are left where the program refuses one."""

    def run(arithmetic: Arithmetic) -> Tensors:
        if arithmetic == refused:
            raise UserCodeError("a probability is above 1", "Mend it.")
        return {"seed": tensor_value(np.array(arithmetic.seed))}

    found = valid_runs(run, (NATIVE, *NOISY))
    return [int(tensors["seed"].values) for tensors in found]


def test_a_noisy_run_that_raises_is_left_out() -> None:
    assert refusing(NOISY[0]) == [NATIVE.seed, 2]


def test_a_program_that_raises_without_noise_is_an_error() -> None:
    with pytest.raises(UserCodeError, match="above 1"):
        refusing(NATIVE)

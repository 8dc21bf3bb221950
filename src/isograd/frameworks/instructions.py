"""Which instructions of the processor oneDNN, the kernels of both frameworks, may use."""

from __future__ import annotations

from collections.abc import Mapping


def instruction_limit(environment: Mapping[str, str]) -> str:
    """The most that oneDNN may use, as AVX2; "" for all that the processor has.

    Source: oneDNN's developer guide, "CPU Dispatcher Control".
    """
    return environment.get("ONEDNN_MAX_CPU_ISA", environment.get("DNNL_MAX_CPU_ISA", ""))


def words_of_limit(environment: Mapping[str, str]) -> str:
    """What a report says of it behind what else is not as the user has it."""
    limit = instruction_limit(environment)
    return f"; oneDNN uses no more than {limit}" if limit else ""

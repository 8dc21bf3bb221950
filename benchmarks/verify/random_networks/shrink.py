"""Reduces a network that alarms to the fewest lines that still do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from network import Ending, Network, Tensor


def shrunk(network: Network, alarms: Callable[[Network], bool]) -> Network:
    """The smallest part that still alarms: single lines first, then by halves (Zeller's ddmin).

    What a part reads from lines that are left out becomes an input of its own.
    """
    for ending in (Ending(native_loss="", native_optimizer=""), _plain_ending):
        for index in range(len(network.lines)):
            part = _with_ending(network.part({index}), ending)
            if alarms(part):
                return part
    kept = list(range(len(network.lines)))
    size = max(1, len(kept) // 2)
    while size:
        for begin in range(0, len(kept), size):
            fewer = kept[:begin] + kept[begin + size :]
            if fewer and alarms(_part(network, fewer)):
                kept = fewer
                break
        else:
            size //= 2
    return _part(network, kept)


def _part(network: Network, kept: list[int]) -> Network:
    return (
        network
        if len(kept) == len(network.lines)
        else _with_ending(network.part(set(kept)), _plain_ending)
    )


def _with_ending(network: Network, ending: Ending | Callable[[Network], Ending]) -> Network:
    found = ending if isinstance(ending, Ending) else ending(network)
    return replace(network, ending=found, returns_dict=False)


def _plain_ending(network: Network) -> Ending:
    """Mean squares of all outputs, and plain descent."""
    targets = tuple(Tensor(network.tensors[name].shape) for name in network.outputs)
    slots = [f"t{i}" for i in range(len(targets))]
    head = f"def loss(output, {', '.join(slots)}):\n    {', '.join(network.outputs)} = output\n"
    terms = [f"(({o} - {t}) ** 2).mean()" for o, t in zip(network.outputs, slots, strict=True)]
    text = f"{head}    return {' + '.join(terms)}"
    has_setup = any(line.setup for line in network.lines)
    optimizer = "torch.optim.SGD(model.parameters(), lr=0.05)" if has_setup else ""
    native = "nn.SGD(model.trainable_params(), 0.05)" if has_setup else ""
    return Ending(text, text, targets, optimizer, native)

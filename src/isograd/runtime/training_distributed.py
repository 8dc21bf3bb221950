"""torch.distributed's data parallelism: several processes started by msrun, or this one alone."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import Any

import mindspore as ms  # noqa: TID253
import numpy as np
from mindspore import communication, ops  # noqa: TID253

from isograd.runtime.torch_module import Module
from isograd.runtime.training_gradients import AFTER_BACKWARD

_STARTED: list[bool] = []


class ReduceOp(Enum):
    """How the values of several processes become one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "prod"
    MIN = "min"
    MAX = "max"


def init_process_group(*_: Any, **__: Any) -> None:
    """Join the processes that msrun started; alone, there is nothing to join."""
    if os.environ.get("MS_WORKER_NUM") and not _STARTED:
        communication.init()
        _STARTED.append(True)


def destroy_process_group(*_: Any) -> None:
    """Leave the other processes."""
    if _STARTED:
        _STARTED.clear()
        communication.release()


def is_initialized() -> bool:
    """Whether there are other processes."""
    return bool(_STARTED)


def get_rank(group: Any = None) -> int:
    """The number of this process, from 0."""
    return int(communication.get_rank()) if _STARTED else 0


def get_world_size(group: Any = None) -> int:
    """How many processes there are."""
    return int(communication.get_group_size()) if _STARTED else 1


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: Any = False
) -> None:
    """Give each process the sum (or mean, greatest, …) of a tensor over all, in place."""
    if not _STARTED:
        return
    kind = "sum" if op is ReduceOp.AVG else op.value
    value = ops.AllReduce(kind)(tensor)
    tensor.copy_(value / get_world_size() if op is ReduceOp.AVG else value)


def broadcast(tensor: Any, src: int = 0, group: Any = None, async_op: Any = False) -> None:
    """Give each process the tensor of one, in place."""
    if _STARTED:
        tensor.copy_(ops.Broadcast(src)((tensor,))[0])


def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: Any = False) -> None:
    """Give each process the tensors of all."""
    if not _STARTED:
        tensor_list[0] = tensor
        return
    for number, part in enumerate(ops.split(ops.AllGather()(tensor), tensor.shape[0])):
        tensor_list[number] = part


def barrier(*_: Any, **__: Any) -> None:
    """Wait for the other processes."""
    if _STARTED:
        ops.AllReduce("sum")(ms.Tensor([1.0], ms.float32)).asnumpy()


class DataParallel(Module):
    """A network under the name `module`; one process computes it whole."""

    def __init__(self, module: Any, *_: Any, **__: Any) -> None:
        super().__init__()
        self.module = module

    def construct(self, *inputs: Any, **named: Any) -> Any:
        """The network's result."""
        return self.module(*inputs, **named)


def data_parallel(module: Any, inputs: Any, *_: Any, **named: Any) -> Any:
    """What a network makes of its inputs; one process computes it whole."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(named.get("module_kwargs") or {}))


class DistributedDataParallel(DataParallel):
    """A network whose gradients are means over all processes, which start with equal weights."""

    def __init__(self, module: Any, *_: Any, **__: Any) -> None:
        super().__init__(module)
        object.__setattr__(self, "_synchronises", True)
        learned = {id(parameter) for parameter in module.trainable_params()}
        if not _STARTED:
            return
        for parameter in module.get_parameters():
            parameter.set_data(ops.Broadcast(0)((parameter,))[0])

        def averaged(parameter: Any, gradient: Any) -> Any:
            if id(parameter) not in learned or not self._synchronises:
                return gradient
            return ops.AllReduce("sum")(gradient) / get_world_size()

        AFTER_BACKWARD.append(averaged)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of this process alone, inside the block."""
        object.__setattr__(self, "_synchronises", False)
        try:
            yield
        finally:
            object.__setattr__(self, "_synchronises", True)


class GraphDataParallel(DataParallel):
    """A network that starts with equal weights in all processes; the compiled step averages."""

    def __init__(self, module: Any, *_: Any, **__: Any) -> None:
        super().__init__(module)
        if _STARTED:
            for parameter in module.get_parameters():
                parameter.set_data(ops.Broadcast(0)((parameter,))[0])


def averaged_gradients(gradients: Any) -> Any:
    """Means of the gradients over all processes, inside a compiled step."""
    if not _STARTED:
        return gradients
    return tuple(map(partial(_averaged, get_world_size()), gradients))


def _averaged(count: int, gradient: Any) -> Any:
    return ops.AllReduce("sum")(gradient) / count


class DistributedSampler:
    """This process's share of the positions, in another order for each epoch."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.num_replicas = get_world_size() if num_replicas is None else num_replicas
        self.rank = get_rank() if rank is None else rank
        self.epoch = 0
        count = len(dataset)
        if drop_last and count % self.num_replicas:
            self.num_samples = math.ceil((count - self.num_replicas) / self.num_replicas)
        else:
            self.num_samples = math.ceil(count / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.dataset)))
        if self.shuffle:
            generator = np.random.default_rng(self.seed + self.epoch)
            order = [int(position) for position in generator.permutation(len(order))]
        while len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch

"""What state dicts hold, how they are read and loaded, and the order of parameters, as in torch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, port_of, run_both, run_port

TRAINER = """
    import torch
    from torch import nn


    class Trainer:
        def __init__(self):
            self.model = nn.Linear(2, 1)
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.1)
            self.scaler = torch.amp.GradScaler('cpu', init_scale=8.0)

        def load(self, checkpoint, scale):
            self.optimizer.load_state_dict(checkpoint)
            self.scaler.load_state_dict(scale)

        def step(self):
            loss = (self.model(torch.ones(3, 2)) ** 2).mean()
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return loss.item()
"""


def test_compiled_optimizers_and_scalers_load_by_their_own_method(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": TRAINER})
    assert "GraphAdamW" in (port / "net.py").read_text()
    code = """
        import json, net
        first, second = net.Trainer(), net.Trainer()
        first.step()
        second.load(first.optimizer.state_dict(), {**first.scaler.state_dict(), 'scale': 4.0})
        print(json.dumps([len(second.optimizer.state_dict()['state']), second.scaler.get_scale()]))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected == [2, 4.0]


def test_a_networks_own_loading_is_called(tmp_path: Path) -> None:
    source = """
        import torch
        from torch import nn


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(2)
                self.loaded = 0

            def forward(self, x):
                return self.norm(x)

            def load_state_dict(self, state, strict=True):
                self.loaded += 1
                kept = {key: value for key, value in state.items() if key != 'gone'}
                return super().load_state_dict(kept, strict)


        def restore(network, state):
            network.load_state_dict(state)


        def run():
            net = Net()
            state = dict(Net().state_dict())
            state['gone'] = torch.ones(1)
            restore(net, state)
            return net.loaded
    """
    port, _ = converted(tmp_path, {"net.py": source})
    expected, found = run_both(tmp_path, port, "import net; print(net.run())")
    assert found == expected == 1


@pytest.mark.parametrize(
    "layer", ["GRU(3, 4, 2)", "LSTM(3, 4, 2, bidirectional=True)", "RNN(3, 4, 11)"]
)
def test_parameters_of_recurrent_layers_come_layer_by_layer(layer: str, tmp_path: Path) -> None:
    source = f"""
        import torch
        from torch import nn
        from torch.nn.utils import parameters_to_vector


        def run():
            net = nn.{layer}
            for number, parameter in enumerate(net.parameters()):
                nn.init.constant_(parameter, 0.1 * number)
            names = [name for name, _ in net.named_parameters()]
            return names, [round(v, 4) for v in parameters_to_vector(net.parameters()).tolist()]
    """
    port, _ = converted(tmp_path, {"net.py": source})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.run()))")
    assert found == expected


def test_what_is_known_to_be_no_more_than_a_copy_may_be_a_network(tmp_path: Path) -> None:
    source = """
        import copy
        import torch
        from torch import nn


        class Average:
            def __init__(self, model, decay):
                self.decay = decay
                self.model = copy.deepcopy(model)
                self.model.eval()
                self.model.requires_grad_(False)

            @torch.no_grad()
            def update(self, model):
                for mean, value in zip(self.model.parameters(), model.parameters()):
                    mean.lerp_(value, 1 - self.decay)
                for mean, value in zip(self.model.buffers(), model.buffers()):
                    mean.copy_(value)


        def run():
            net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
            average = Average(net, 0.5)
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter.fill_(2.0)
            net[1].running_mean.fill_(3.0)
            for parameter in average.model.parameters():
                parameter.data.fill_(1.0)
            average.update(net)
            learn = [parameter.requires_grad for parameter in average.model.parameters()]
            sums = [float(parameter.sum()) for parameter in average.model.parameters()]
            return learn, sums, float(average.model[1].running_mean.sum())
    """
    port, _ = converted(tmp_path, {"net.py": source})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.run()))")
    assert found == expected == [[False] * 4, [6.0, 3.0, 3.0, 3.0], 6.0]


STATES = """
    import copy
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(4, 3)
            self.body = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.PReLU())
            self.memory = nn.GRU(3, 2, bidirectional=True)
            self.norm = nn.LayerNorm(4)
            self.images = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
            self.plain = nn.BatchNorm2d(2, affine=False)
            self.register_buffer('steps', torch.zeros(2))
            self.register_buffer('passing', torch.zeros(2), persistent=False)

        def forward(self, x):
            return self.norm(self.memory(self.body(self.table(x)))[0])


    def listed():
        state = Net().state_dict()
        return [(name, value.numel()) for name, value in state.items()], len(state)


    def written():
        net = Net()
        with torch.no_grad():
            for name, value in net.state_dict().items():
                if name.endswith('weight'):
                    value.fill_(2.0)
            net.state_dict()['body.1.running_mean'].copy_(torch.ones(3))
        sums = [float(p.sum()) for name, p in net.named_parameters() if name.endswith('weight')]
        return sums, float(net.body[1].running_mean.sum())


    def edited():
        net = Net()
        state = copy.deepcopy(Net().state_dict())
        state['body.1.bias'] = torch.full((3,), 7.0)
        state['body.2.weight'] = torch.full((1,), 0.75)
        state['other'] = torch.ones(1)
        del state['table.weight']
        state.pop('norm.bias')
        found = net.load_state_dict(state, strict=False)
        sums = float(net.body[1].bias.sum()), float(net.body[2].weight.sum())
        return sums, sorted(found.missing_keys), list(found.unexpected_keys)


    def part(given):
        net = Net()
        own = net.state_dict()
        fitting = {k: v for k, v in given.items() if k in own and v.shape == own[k].shape}
        own.update(fitting)
        net.load_state_dict(own)
        return len(fitting), float(net.body[1].bias.sum())
"""


def test_a_state_that_is_read_has_torchs_names_order_and_memory(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": STATES})
    code = "import json, net; print(json.dumps([net.listed(), net.written(), net.edited()]))"
    expected, found = run_both(tmp_path, port, code)
    assert found == expected


def test_a_checkpoint_of_mindspore_fits_a_state_that_is_read(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": STATES})
    native = """
        import mindspore as ms, net
        given = net.Net()
        given.body[1].beta.set_data(ms.Tensor([1.0, 2.0, 3.0]))
        print(*net.part(given.state_dict()))
    """
    entries, total = run_port(port, native).split()
    assert (int(entries), float(total)) == (25, 6.0)


LOADED = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(2, 3, 3)
            self.norm = nn.BatchNorm1d(3)
            self.gamma = nn.Parameter(torch.ones(3))
            whole = torch.arange(10.0)
            self.register_buffer("part", whole[2:5])
            self.register_buffer("chosen", whole[[1, 2, 3]])
            self.register_buffer("count", torch.tensor(3))

        def forward(self, x):
            shift = self.part[:, None] + self.chosen[:, None] * self.count
            return self.norm(self.conv(x)) * self.gamma[:, None] + shift


    def trained():
        net, other = Net(), Net()
        x = torch.arange(42.0).reshape(3, 2, 7) / 42
        for one, value in ((net, 0.3), (other, 0.2)):
            for parameter in one.parameters():
                parameter.data.fill_(value)
        optimizer = torch.optim.SGD(other.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            loss = (other(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.item()

        step()
        net.part[1] = 100.0
        net.chosen[0] = 50.0
        net.count += 4
        found = str(other.load_state_dict(net.state_dict()))
        held = other.part, other.chosen, other.count, other.conv.weight
        return found, [float(values.sum()) for values in held], [step(), step()]
"""


def test_values_reach_parts_of_tensors_and_parameters_that_an_optimizer_holds(
    tmp_path: Path,
) -> None:
    port, _ = converted(tmp_path, {"net.py": LOADED})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.trained()))")
    assert found[0] == expected[0]
    assert found[1:] == [pytest.approx(numbers, rel=1e-6) for numbers in expected[1:]]


VIEWS_AS_BUFFERS = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            table = torch.arange(6.0).reshape(2, 3)
            turned = table.permute(1, 0)
            self.register_buffer("turned", turned)
            self.register_buffer("last", torch.arange(4.0)[1:])
            self.register_buffer("second", torch.arange(4.0).split(2)[1])
            self.register_buffer("none", None)


    def values(net):
        return [buffer.numpy().tolist() for buffer in net.buffers()]


    def written():
        net, other = Net(), Net()
        net.turned.copy_(torch.full((3, 2), 7.0))
        net.last.fill_(8.0)
        net.second.copy_(torch.tensor([4.0, 5.0]))
        state = net.state_dict()
        other.load_state_dict({name: state[name] + 1 for name in state})
        return values(net), values(other)
"""


def test_buffers_that_were_views_are_written_and_loaded(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": VIEWS_AS_BUFFERS})
    expected, found = run_both(tmp_path, port, "import json, net; print(json.dumps(net.written()))")
    assert found == expected


@pytest.mark.parametrize(
    "code",
    [
        "torch.save(net.state_dict(), 'net.ckpt')",
        "best = copy.deepcopy(net.state_dict())\nif best:\n    net.load_state_dict(best)",
        "torch.save({'model': net.state_dict(), 'epoch': 1}, 'all.ckpt')",
        "keep({'model': net.state_dict(), 'epoch': 1}, 'all.ckpt')",
        "net.load_state_dict(held(net)['model'])",
    ],
)
def test_a_state_that_is_only_kept_is_mindspores(code: str) -> None:
    port, _ = port_of(KEEPING + code)
    assert "net.state_dict()" in port
    assert "compat.state_dict" not in port


@pytest.mark.parametrize(
    "code",
    [
        "print(len(net.state_dict()))",
        "print('weight' in held(net)['model'])",
        "best = net.state_dict()\nfor name in best:\n    print(name)",
        "average([net.state_dict()])",
        "best = dict(net.state_dict())\nbest.pop('weight')",
    ],
)
def test_a_state_that_is_read_anywhere_is_torchs(code: str) -> None:
    port, _ = port_of(KEEPING + code)
    assert "compat.state_dict(net)" in port
    assert "net.state_dict()" not in port


KEEPING = """
import copy
import torch
from torch import nn


def keep(checkpoint, path):
    torch.save(checkpoint, path)


def held(net):
    return {'model': net.state_dict()}


def average(states):
    return {name: sum(state[name] for state in states) for name in states[0]}


net = nn.Linear(2, 2)
"""


EXTRA = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen, self.layer = 0, nn.Linear(2, 1)

        def get_extra_state(self):
            return {"seen": self.seen}

        def set_extra_state(self, state):
            self.seen = state["seen"]


    def load(net, state):
        try:
            net.load_state_dict(state)
        except RuntimeError as error:
            return "extra_state" in str(error)
        return net.seen
"""


def test_extra_state_is_kept_and_loaded(tmp_path: Path) -> None:
    port, _ = converted(tmp_path, {"net.py": EXTRA})
    code = """
        import json, net
        first, second = net.Net(), net.Net()
        first.seen = 5
        without = {k: v for k, v in first.state_dict().items() if 'extra' not in k}
        found = [net.load(second, first.state_dict()), net.load(second, without)]
        print(json.dumps(found + [sorted(first.state_dict())]))
    """
    expected, found = run_both(tmp_path, port, code)
    assert found == expected == [5, True, ["_extra_state", "layer.bias", "layer.weight"]]

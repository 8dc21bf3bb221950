"""What state dicts hold, how they are read and loaded, and the order of parameters, as in torch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("mindspore")

from tests.convert.support import converted, run_both

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

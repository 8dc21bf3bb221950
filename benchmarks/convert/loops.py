"""Random training loops, converted and run: what they print is what the original prints.

python benchmarks/convert/loops.py --seeds 200
python benchmarks/convert/loops.py --first 17 --seeds 1 --show

Each loop has statements of usual kinds in a random order around the forward pass, the loss, the
backward pass and the step: batches and outputs that change in place, values that are kept for later
rounds, numbers and tensors that change, conditions.  A loop whose order matters has to stay eager
or to be written so that the order is kept.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import textwrap
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parents[1]), str(HERE)]

from tests.warm_python import run_python  # noqa: E402

from isograd.convert.run import convert_path  # noqa: E402

IMPORTS = "import torch\nfrom torch import nn\n\n"
HEAD = """net = nn.Linear(3, 3)
for i, p in enumerate(net.parameters()):
    p.data = 0.3 * torch.sin(torch.arange(p.numel()).reshape(p.shape) + i)
optimizer = {optimizer}
batches = [torch.sin(torch.arange(6.0).reshape(2, 3) + k) for k in range(4)]
w, bank, scale, total = torch.ones(3), torch.ones(2, 3), 1.0, 0.0
seen, stat = [], {{"m": torch.zeros(1)}}
q = torch.zeros(2, 3)
"""
LOOP = "for k, x in enumerate(batches):\n"
#: What is kept on the object where the loop stands in a method.
KEPT = re.compile(r"\b(net|optimizer|batches|w|bank|scale|total|seen|stat|q)\b")
OPTIMIZERS = (
    "torch.optim.SGD(net.parameters(), lr=0.1)",
    "torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)",
    "torch.optim.Adam(net.parameters(), lr=0.05)",
)
#: Before the forward pass.
BEFORE = (
    "x = x * 2",
    "x = x.clone()\n    x[0] = 1.0",
    "x.mul_(0.5)",
    "scale = scale * 0.5",
    "w = w + 0.1",
    "x = x + w",
    "w.mul_(1.1)",
    "stat['m'] = x.mean()",
    "if k > 1:\n        scale = 0.3",
)
FORWARD = ("y = net(x)", "y = net(x + w)", "y = torch.tanh(net(x))", "y = net(x) * scale")
#: Between the forward pass and the loss.
BETWEEN = (
    "y = y * w",
    "y.mul_(2.0)",
    "y[:, 0] = 0.0",
    "y += 1.0",
    "y = y + net(x * 0.5)",
    "bank[0] = y.detach()[0]",
    "bank = y.detach() * 0.5",
    "seen.append(y.detach().sum().item())",
    "stat['m'] = y.detach().mean()",
    "w = w * 1.1",
    "w.add_(0.1)",
    "scale += 0.1",
    "x = x * 3",
    "q = y.detach()",
    "n = y.sum().item()\n    scale = 0.7 if n > 0 else 1.3",
    "with torch.no_grad():\n        q = net(x)",
    "with torch.no_grad():\n        y.clamp_(max=0.5)",
    "y.data.mul_(0.5)",
    "torch.clamp_(y, max=0.9)",
)
LOSS = (
    "loss = (y * w).sum() * scale",
    "loss = y.pow(2).mean() + stat['m'].sum()",
    "loss = (y @ bank.t()).pow(2).mean()",
    "loss = (y - x).pow(2).mean()",
    "loss = nn.functional.mse_loss(y, q) + y.mean()",
    "loss = (y - q * scale).abs().mean()\n    loss = loss + (w * y).mean()",
)
#: The loss under its name a second time, behind what reads the first one.
AGAIN = (
    "loss = loss / 2",
    "loss /= 2",
    "seen.append(loss.item())\n    loss = loss / 2",
    "total += loss.item()\n    loss /= 2",
    "stat['m'] = loss.detach()\n    loss = loss * scale",
    "total += loss.detach()\n    loss = loss + (w * y).mean()",
    "q = y.detach()\n    y = y * 2\n    loss = loss + y.mean()",
    "print(f'{loss:.4f}')\n    loss *= 0.5",
)
#: Behind the loss, and between the backward pass and the step.
BEHIND = (
    "total += loss.item()",
    "seen.append(loss.item())",
    "w = w + 0.1",
    "scale = 1.1",
    "stat['m'] = y.detach().mean()",
    "q = y.detach() * 0.1",
    "x = x + 1",
    "bank.mul_(0.9)",
)
PRINT = "print(loss.item(), net.weight.sum().item(), w.sum().item(), scale, total)"
TAIL = "print(len(seen), sum(seen), bank.sum().item(), stat['m'].sum().item(), q.sum().item())"
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)(?![\w.])")
#: Losses and weights of four rounds in float32.
TOLERANCE = 2e-4


def program(seed: int) -> str:
    """One training script."""
    draw = random.Random(seed)

    def some(pool: tuple[str, ...], most: int) -> list[str]:
        return draw.sample(pool, draw.randint(0, most))

    lines = [*some(BEFORE, 2), draw.choice(FORWARD), *some(BETWEEN, 3), draw.choice(LOSS)]
    lines += some(AGAIN, 1)
    zero = "optimizer.zero_grad()"
    lines.insert(draw.choice((0, len(lines))), zero)
    lines += [*some(BEHIND, 2), "loss.backward()", *some(BEHIND, 1), "optimizer.step()"]
    lines += [*some(BEHIND, 1), PRINT]
    head = HEAD.format(optimizer=draw.choice(OPTIMIZERS))
    body = LOOP + "".join(f"    {line}\n" for line in lines) + TAIL + "\n"
    form = draw.choice(("script", "function", "method", "method of a batch"))
    if form == "script":
        return f"{IMPORTS}{head}{body}"
    if form == "function":
        text = textwrap.indent(head + body, "    ")
        return f"{IMPORTS}\ndef main():\n{text}\n\nmain()\n"
    start = "class Trainer:\n    def __init__(self):\n"
    start += textwrap.indent(KEPT.sub(r"self.\1", head), " " * 8)
    if form == "method":
        own = textwrap.indent(KEPT.sub(r"self.\1", body), " " * 8)
        return f"{IMPORTS}\n{start}\n    def run(self):\n{own}\n\nTrainer().run()\n"
    own = "".join(f"    {line}\n" for line in lines)
    own = textwrap.indent(textwrap.dedent(KEPT.sub(r"self.\1", own)), " " * 8)
    calls = "    for k, x in enumerate(trainer.batches):\n        trainer.step(k, x)\n"
    end = textwrap.indent(KEPT.sub(r"trainer.\1", TAIL), "    ")
    return (
        f"{IMPORTS}\n{start}\n    def step(self, k, x):\n{own}\n\n"
        f"def main():\n    trainer = Trainer()\n{calls}{end}\n\n\nmain()\n"
    )


def numbers(text: str) -> list[float]:
    """All numbers that a script printed."""
    return [float(word) for word in _NUMBER.findall(text)]


def judged(seed: int, folder: Path) -> dict[str, object]:
    """How the port of one loop compares to the original."""
    text = program(seed)
    script = folder / "script.py"
    script.write_text(text)
    run = "import runpy; runpy.run_path('script.py', run_name='__main__')"
    original = run_python(run, cwd=folder, imported=["torch"])
    if original.returncode:
        return {"seed": seed, "outcome": "invalid", "why": original.stderr.strip()[-200:]}
    report = convert_path(script, folder / "port")
    port = folder / "port" if (folder / "port").is_dir() else folder
    is_compiled = "ms.jit" in (folder / "port" / "script.py").read_text()
    form = "compiled" if is_compiled else "eager"
    told = [f.message for f in report.findings if f.level.value == "finish"]
    done = run_python(run, cwd=port, imported=["mindspore"])
    if done.returncode:
        outcome = "told" if told else "error"
        return {"seed": seed, "outcome": outcome, "form": form, "why": done.stderr.strip()[-300:]}
    own = numbers("\n".join(r for r in done.stdout.splitlines() if "WARNING" not in r))
    wanted = numbers(original.stdout)
    worst = max(
        (abs(a - b) / max(1.0, abs(b)) for a, b in zip(own, wanted, strict=False)), default=0.0
    )
    is_same = len(own) == len(wanted) and worst < TOLERANCE
    outcome = "same" if is_same else "told" if told else "differs"
    return {"seed": seed, "outcome": outcome, "form": form, "worst": worst}


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each loop that is not the same, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=100, help="how many loops")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--out", type=Path, help="rows as JSON lines")
    options = parser.parse_args(arguments)
    rows = []
    for seed in range(options.first, options.first + options.seeds):
        with tempfile.TemporaryDirectory(prefix="isograd-loops-") as folder:
            row = judged(seed, Path(folder))
            if options.show:
                print(program(seed))
                port = Path(folder) / "port" / "script.py"
                print(port.read_text() if port.exists() else "")
        rows.append(row)
        if row["outcome"] != "same":
            print(json.dumps(row), flush=True)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts: dict[str, int] = {}
    for row in rows:
        name = f"{row['outcome']} {row.get('form', '')}".strip()
        counts[name] = counts.get(name, 0) + 1
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    return int(any(row["outcome"] in ("differs", "error") for row in rows))


if __name__ == "__main__":
    sys.exit(main())

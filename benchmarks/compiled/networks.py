"""Networks with a place for a fault: pairs of files in torch and in MindSpore.

Each network is a stem, blocks `x + F(x)`, and a head; one block is another class, into whose
construct a plant writes the same sum by another construct of Python.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """The words of a framework."""

    head: str
    module: str
    forward: str
    names: dict[str, str]


TORCH = Dialect(
    "import torch\nfrom torch import nn\n",
    "nn.Module",
    "forward",
    {
        "LINEAR": "nn.Linear",
        "NORM8": "nn.LayerNorm(8)",
        "CONV": "nn.Conv2d(4, 4, 3, padding=1)",
        "STEMCONV": "nn.Conv2d(3, 4, 1)",
        "BATCHNORM": "nn.BatchNorm2d(4)",
        "EMBEDDING": "nn.Embedding(11, 8)",
        "LIST": "nn.ModuleList",
        "SEQUENCE": "nn.Sequential",
        "OPS": "torch",
        "MEAN23": ".mean((2, 3))",
        "MEAN1": ".mean(1)",
        "MATMUL": "torch.matmul",
        "SOFTMAX": "torch.softmax({}, -1)",
        "GELU": "nn.functional.gelu({})",
    },
)
MINDSPORE = Dialect(
    "import mindspore as ms\nfrom mindspore import nn, ops\n",
    "nn.Cell",
    "construct",
    {
        "LINEAR": "nn.Dense",
        "NORM8": "nn.LayerNorm((8,), epsilon=1e-5)",
        "CONV": 'nn.Conv2d(4, 4, 3, pad_mode="pad", padding=1, has_bias=True)',
        "STEMCONV": 'nn.Conv2d(3, 4, 1, pad_mode="valid", has_bias=True)',
        "BATCHNORM": "nn.BatchNorm2d(4, momentum=0.9)",
        "EMBEDDING": "nn.Embedding(11, 8)",
        "LIST": "nn.CellList",
        "SEQUENCE": "nn.SequentialCell",
        "OPS": "ops",
        "MEAN23": ".mean((2, 3))",
        "MEAN1": ".mean(1)",
        "MATMUL": "ops.matmul",
        "SOFTMAX": "ops.softmax({}, -1)",
        "GELU": "ops.gelu({})",
    },
)


@dataclass(frozen=True)
class Network:
    """One network: how a block is made, what it adds, and the inputs.

    made: lines of a block's constructor; added: the expression F; stem, pool: before and after the
    blocks; path: the planted block's name; nested: whether the blocks stand in stages.
    """

    name: str
    made: tuple[str, ...]
    added: str
    stem: str = "LINEAR(8, 8)"
    pool: str = ""
    features: int = 8
    shape: tuple[int, ...] = (4, 8)
    dtype: str = "float32"
    nested: bool = False

    @property
    def planted(self) -> str:
        """The planted block's name."""
        return "stages.1.blocks.0" if self.nested else "blocks.1"


NETWORKS = (
    Network("mlp", ("self.fc = LINEAR(8, 8)",), "self.fc(x)"),
    Network(
        "gated",
        ("self.a = LINEAR(8, 8)", "self.b = LINEAR(8, 8)"),
        "self.a(x) * OPS.sigmoid(self.b(x))",
    ),
    Network(
        "convolution",
        ("self.conv = CONV",),
        "OPS.tanh(self.conv(x))",
        stem="STEMCONV",
        pool="MEAN23",
        features=4,
        shape=(2, 3, 6, 6),
    ),
    Network(
        "normalised",
        ("self.conv = CONV", "self.norm = BATCHNORM"),
        "OPS.relu(self.norm(self.conv(x)))",
        stem="STEMCONV",
        pool="MEAN23",
        features=4,
        shape=(4, 3, 6, 6),
        nested=True,
    ),
    Network(
        "attention",
        ("self.q = LINEAR(8, 8)", "self.k = LINEAR(8, 8)", "self.v = LINEAR(8, 8)"),
        "MATMUL(SOFTMAX<MATMUL(self.q(x), self.k(x).swapaxes(1, 2)) * 0.35>, self.v(x))",
        pool="MEAN1",
        shape=(2, 5, 8),
    ),
    Network(
        "mixer",
        ("self.mix = LINEAR(5, 5)",),
        "self.mix(x.swapaxes(1, 2)).swapaxes(1, 2)",
        pool="MEAN1",
        shape=(2, 5, 8),
        nested=True,
    ),
    Network(
        "feed_forward",
        ("self.norm = NORM8", "self.inner = LINEAR(8, 16)", "self.out = LINEAR(16, 8)"),
        "self.out(OPS.tanh(self.inner(self.norm(x))))",
        pool="MEAN1",
        shape=(2, 5, 8),
    ),
    Network(
        "tokens",
        ("self.fc = LINEAR(8, 8)",),
        "OPS.sigmoid(self.fc(x))",
        stem="EMBEDDING",
        pool="MEAN1",
        shape=(3, 5),
        dtype="int64",
        nested=True,
    ),
    Network(
        "two_layers",
        ("self.first = LINEAR(8, 12)", "self.second = LINEAR(12, 8)"),
        "self.second(OPS.relu(self.first(x)))",
        nested=True,
    ),
)


def spelled(text: str, dialect: Dialect) -> str:
    """The text in a framework's words; `SOFTMAX<…>` takes its argument in the angles."""
    for word in sorted(dialect.names, key=len, reverse=True):
        value = dialect.names[word]
        while f"{word}<" in text:
            start = text.index(f"{word}<")
            end = text.index(">", start)
            inner = text[start + len(word) + 1 : end]
            text = text[:start] + value.format(inner) + text[end + 1 :]
        text = text.replace(word, value)
    return text


def source(
    network: Network,
    dialect: Dialect,
    construct: str,
    before: str = "",
    made: str = "",
    methods: str = "",
) -> str:
    """One side's file: the planted block has this construct, and what it needs around it."""
    init = "\n".join(f"        {line}" for line in network.made)
    blocks = "[Block(), Planted(), Block()]"
    stages = ""
    if network.nested:
        stages = (
            f"class Stage({dialect.module}):\n"
            "    def __init__(self, blocks):\n        super().__init__()\n"
            "        self.blocks = LIST(blocks)\n"
            f"    def {dialect.forward}(self, x):\n"
            "        for block in self.blocks:\n            x = block(x)\n        return x\n"
        )
        blocks = "[Stage([Block()]), Stage([Planted(), Block()])]"
    attribute = "stages" if network.nested else "blocks"
    text = (
        f"{dialect.head}{before}\n"
        f"class Block({dialect.module}):\n"
        f"    def __init__(self):\n        super().__init__()\n{init}\n"
        f"    def {dialect.forward}(self, x):\n        return x + {network.added}\n"
        f"class Planted({dialect.module}):\n"
        f"    def __init__(self):\n        super().__init__()\n{init}\n{made}{methods}"
        f"{construct}"
        f"{stages}"
        f"class Net({dialect.module}):\n"
        "    def __init__(self):\n        super().__init__()\n"
        f"        self.stem = {network.stem}\n"
        f"        self.{attribute} = LIST({blocks})\n"
        f"        self.head = LINEAR({network.features}, 3)\n"
        f"    def {dialect.forward}(self, x):\n"
        "        x = self.stem(x)\n"
        f"        for part in self.{attribute}:\n            x = part(x)\n"
        f"        return self.head(x{network.pool})\n"
        "def build():\n    return Net()\n"
        "def loss(output, target):\n    return ((output - target) ** 2).mean()\n"
    )
    made_optimizer = (
        "torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)"
        if dialect is TORCH
        else "nn.SGD(model.trainable_params(), learning_rate=0.05, momentum=0.9)"
    )
    text += f"def optimizer(model):\n    return {made_optimizer}\n"
    return spelled(text, dialect)


def case(network: Network) -> str:
    """The case file of a pair."""
    integers = '\nfill = "integers"\nlow = 0\nhigh = 11' if network.dtype == "int64" else ""
    sides = "".join(
        f'[{side}]\nframework = "{name}"\nmodel = "net_{name}.py:build"\n'
        f'loss = "net_{name}.py:loss"\noptimizer = "net_{name}.py:optimizer"\n'
        for side, name in (("reference", "torch"), ("port", "mindspore"))
    )
    return (
        f"{sides}[[inputs]]\nshape = {list(network.shape)}\n"
        f'dtype = "{network.dtype}"{integers}\n'
        f"[[targets]]\nshape = [{network.shape[0]}, 3]\n"
        '[verify]\ncompiled = "required"\n'
    )

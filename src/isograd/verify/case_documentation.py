"""The page docs/case.md, written from the schema of a case file by `python -m` of this module.

A test compares the page with the file, and reads every example in it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from isograd.verify.case_schema import properties, schema

_INTRODUCTION = """# The case file of `isograd verify`

A case file says what is compared: two networks, what they are given, and how far the comparison
goes. It is TOML. Paths are relative to the case file. A callable is `file.py:name` or
`package.module:name`. `isograd init REFERENCE.py PORT.py` writes a first one. The same rules stand
in a JSON schema, `isograd/verify/case_schema.json` in the package, for editors that check TOML.

```toml
[reference]
framework = "torch"
model = "net_torch.py:build"
loss = "net_torch.py:loss"
optimizer = "net_torch.py:optimizer"

[port]
framework = "mindspore"
model = "net_mindspore.py:build"
loss = "net_mindspore.py:loss"
optimizer = "net_mindspore.py:optimizer"

[[inputs]]
shape = [2, 3, 64, 64]

[[targets]]
shape = [2]
dtype = "int64"
low = 0
high = 10

[verify]
mode = "train"
steps = 10
```
"""
_ARGUMENTS = """An entry is a tensor, or what its one key says: `value`, `none`, `list`, `tuple` or
`dict`. Entries of containers have the same keys.

```toml
[[inputs]]                       # a tensor of normal numbers
shape = [4, 16, 8]

[[inputs]]                       # which positions are padding, as torch's key_padding_mask
shape = [4, 16]
dtype = "bool"
fill = "padding_mask"
valid = false
padding = true
name = "key_padding_mask"

[[inputs]]                       # a string
value = "mean"

[[inputs]]                       # None
none = true

[[inputs]]                       # a pair of a tensor and a dictionary
tuple = [{ shape = [4, 3] }, { dict = { scale = { value = 0.5 }, table = { file = "t.npy" } } }]
```

Each optimizer step and each entry draws other numbers; both sides get the same. A mask by
`padding_mask` begins every row with valid positions, half of the axis or more; where there are
several rows, the first is full and the last is not.
"""
_CALLABLE = """`inputs` and `targets` may each be a callable, in a line above the first table:

```toml
inputs = "data.py:batch"
targets = "data.py:labels"

[reference]
model = "net_torch.py:build"
loss = "net_torch.py:loss"

[port]
model = "net_mindspore.py:build"
loss = "net_mindspore.py:loss"
```

```python
import numpy as np


def batch(step):
    generator = np.random.default_rng(step)
    ids = generator.integers(0, 100, (4, 16))
    return (ids,), {"mask": None}


def labels(step):
    return np.random.default_rng(step).integers(0, 100, (4, 16))
```

It is called in the reference's process and returns numpy arrays, strings, numbers, None, or lists,
tuples and dictionaries of these. `(args, kwargs)` with a dictionary of names is taken as such; else
a tuple holds positional arguments, a dictionary keyword arguments, and anything else is the one
argument. A function with an argument gets the step, counted from 0.
"""
_STATE = """What a module keeps in its own attributes between calls (a hidden state, a cache, a
counter) is put back before every pass. Where a network keeps state elsewhere, name a function that
takes the network and resets it:

```toml
inputs = "data.py:batch"

[reference]
model = "net_torch.py:build"
reset = "net_torch.py:reset"

[port]
model = "net_mindspore.py:build"
reset = "net_mindspore.py:reset"
```
"""


def page() -> str:
    """The whole page in Markdown."""
    sections = [
        ("The file", "case", ""),
        ("`[reference]` and `[port]`", "side", ""),
        ("`[[inputs]]` and `[[targets]]`", "argument", _ARGUMENTS),
        ("`[weights]`", "weights", ""),
        ("`[verify]`", "verify", ""),
    ]
    parts = [_INTRODUCTION]
    for title, table, text in sections:
        parts += [f"## {title}\n", *([text] if text else []), *_table(table)]
    parts += ["## Inputs from a callable\n", _CALLABLE, "## State between calls\n", _STATE]
    return "\n".join(parts)


def _table(name: str) -> Iterator[str]:
    """The keys of one table."""
    definition = schema() if name == "case" else schema()["$defs"][name]
    required = definition.get("required", [])
    yield "| key | values | default | meaning |\n|---|---|---|---|"
    for key, rule in properties(name).items():
        usual = "required" if key in required else _default(rule)
        meaning = rule.get("description", "").replace("|", "\\|")
        yield f"| `{key}` | {_values(rule)} | {usual} | {meaning} |"
    yield ""


def _default(rule: dict[str, Any]) -> str:
    return f"`{json.dumps(rule['default'])}`" if "default" in rule else ""


def _values(rule: dict[str, Any]) -> str:
    """What a key may hold, in words."""
    if "enum" in rule:
        return ", ".join(f"`{json.dumps(value)}`" for value in rule["enum"])
    if "const" in rule:
        return f"`{json.dumps(rule['const'])}`"
    if "oneOf" in rule:
        return " or ".join([_values(one) for one in rule["oneOf"]])
    if "$ref" in rule:
        return "table"
    kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    words = {"object": "table", "array": "list", "boolean": "true or false"}
    text = ", ".join(words.get(kind, str(kind)) for kind in kinds)
    if rule["type"] == "array":
        inner = rule["items"]
        text = "list of tables" if "$ref" in inner else f"list of {inner['type']}s"
    least = rule.get("minimum")
    return text if least is None else f"{text}, {least} or more"


if __name__ == "__main__":
    sys.stdout.write(page())

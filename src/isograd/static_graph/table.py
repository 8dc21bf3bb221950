"""Reads the table of constructs and what executing them showed."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

from isograd.static_graph.rule import SILENT, WAYS, Answer, Construct, Rule

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).with_name("data")
VERIFIED = Path(__file__).with_name("verified-cpu.json")

#: What stands before every example; `Base` is a network of two layers.
HEADER = """import collections
import dataclasses
import enum
import functools
import math
import random
import warnings
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops


class Base(nn.Cell):
    IN = "x"
    PICK = "sum"
    WATCH = ()
    FWDTRAIN = False

    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.fc2 = nn.Dense(4, 4)
        self.setup()

    def setup(self):
        pass


"""


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule by its code."""
    table = tomllib.loads((DATA / "rules.toml").read_text(encoding="utf-8"))
    found = (_rule(entry) for entry in table["rule"])
    return {rule.code: rule for rule in found}


def _rule(entry: dict[str, Any]) -> Rule:
    return Rule(
        entry["code"],
        entry["message"],
        entry["advice"],
        tuple(entry.get("node", "").split()),
        tuple(entry.get("call", ())),
        entry.get("keyword", ""),
        tuple(entry.get("method", "").split()),
        entry.get("of", ""),
        entry.get("detector", ""),
        tuple(entry.get("cells", "").split()),
        entry.get("in_torch", True),
    )


@functools.cache
def constructs() -> tuple[Construct, ...]:
    """Every construct, those with a rule first."""
    tables = [tomllib.loads(p.read_text(encoding="utf-8")) for p in sorted(DATA.glob("*.toml"))]
    found = [_construct(entry) for table in tables for entry in table.get("construct", ())]
    return tuple(sorted(found, key=lambda c: (not c.rule, c.code)))


def _construct(entry: dict[str, str]) -> Construct:
    return Construct(
        entry["code"],
        entry["example"],
        entry.get("rule", ""),
        entry.get("title", ""),
        entry.get("counterexample", ""),
    )


@functools.cache
def verified() -> dict[str, Any]:
    """What executing each construct showed, by code; empty where nothing was executed yet."""
    if not VERIFIED.is_file():
        return {}
    found: dict[str, Any] = json.loads(VERIFIED.read_text(encoding="utf-8"))["results"]
    return found


def answers(code: str, part: str = "example") -> dict[str, Answer]:
    """What each way makes of a construct's example or counterexample."""
    row = verified().get(code, {}).get(part, {})
    return {way: Answer(*row[way]) for way in WAYS if way in row}


@functools.cache
def consequence(rule: str) -> str:
    """The gravest verdict of a rule's constructs under `jit` and GRAPH_MODE; silent before loud."""
    found = [
        answer.verdict
        for construct in constructs()
        if construct.rule == rule
        for way, answer in answers(construct.code).items()
        if way != "strict"
    ]
    order = (*SILENT, "refused")
    return min((v for v in found if v in order), key=order.index, default="same")

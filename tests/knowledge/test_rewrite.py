"""Calls of torch and what the knowledge makes of them."""

import re
from collections import Counter
from pathlib import Path

import pytest

from isograd import runtime
from isograd.knowledge import load_knowledge
from isograd.knowledge.entry import Applicability, Entry, Status
from isograd.knowledge.port import NoPortError, mutating_port_of, port_of
from isograd.knowledge.rewrite import (
    PLACE,
    Call,
    NotRewritten,
    Rewritten,
    class_of,
    operand,
    parameters_of,
    reference,
    rewrite,
)

BEFORE_AND_AFTER = {
    "torch.abs(x)": "ops.abs(x)",
    "torch.cat([a, b], dim=1)": "ops.cat([a, b], 1)",
    "torch.concat((a, b))": "ops.cat((a, b), 0)",
    "x.view(2, -1)": "x.view(2, -1)",
    "x.size()": "x.shape",
    "x.size(-1)": "x.shape[-1]",
    "x.unsqueeze(dim=0)": "ops.expand_dims(x, 0)",
    "x.mean(-1, keepdim=True)": "ops.mean(x, axis=-1, keep_dims=True)",
    "torch.mean(x, dtype=torch.float64)": "ops.mean(x.astype(ms.float64))",
    "(a + b).pow(2)": "(a + b) ** 2",
    "torch.sub(a, b + c)": "a - (b + c)",
    "torch.mul(a - 1, b)": "(a - 1) * b",
    "torch.add(a, b, alpha=2)": "ops.add(a, 2 * b)",
    "torch.add(a, 2, b)": "ops.add(a, 2 * b)",
    "x.sub(-lr, b)": "ops.sub(x, -lr * b)",
    "x.addcdiv(2, a, b)": "composites.addcdiv(x, a, b, value=2)",
    "torch.addmm(2, x, 3, a, b)": "ops.addmm(x, a, b, beta=2, alpha=3)",
    "x.addmm(2, a, b)": "ops.addmm(x, a, b, beta=2, alpha=1)",
    "x.sub(lr * 2, g)": "ops.sub(x, lr * 2 * g)",
    "x.addcmul(1 - rate, g, h)": "composites.addcmul(x, g, h, value=1 - rate)",
    "x.to('cpu').float()": "composites.to(x, 'cpu').float()",
    "torch.zeros(2, 3, device=x.device)": "ops.zeros((2, 3), dtype=ms.float32)",
    "torch.zeros(*shape)": "ops.zeros(tuple(shape), dtype=ms.float32)",
    "torch.nn.functional.relu(x, inplace=True)": "ops.relu(x)",
    "torch.nn.functional.softmax(x, dim=-1, dtype=torch.float32)":
        "composites.softmax(x, -1, dtype=ms.float32)",
    "torch.nn.Linear(4, 5, bias=False)": "nn.Dense(4, 5, has_bias=False)",
    "torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)":
        "nn.Conv2d(3, 8, 3, pad_mode='pad', padding=1, has_bias=False)",
    "torch.nn.BatchNorm2d(8, momentum=0.01)":
        "nn.BatchNorm2d(8, momentum=1 - 0.01)",
    # It averages all batches alike: there is no number to take from 1.
    "torch.nn.BatchNorm1d(3, momentum=None)":
        "composites.BatchNorm1d(3, 1e-05, None, True, True)",
    "torch.nn.MaxPool2d(2)": "nn.MaxPool2d(2, 2, pad_mode='pad')",
    "torch.nn.MaxPool2d((3, k))": "nn.MaxPool2d((3, k), (3, k), pad_mode='pad')",
    "torch.nn.MaxPool2d(next(sizes))":
        "composites.max_pool2d_cell(next(sizes), None, 0, 1, False, False)",
    "torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())":
        "nn.SequentialCell(nn.ReLU(), nn.Tanh())",
    "torch.relu(torch.abs(x).sum(1))": "ops.relu(ops.sum(ops.abs(x), dim=1))",
    # Several sizes, or a tuple that is written out, are a tuple; one name may be either.
    "x.repeat(n, 1)": "ops.tile(x, (n, 1))",
    "x.repeat((n, *rest))": "ops.tile(x, (n, *rest))",
    "x.repeat(2)": "ops.tile(x, (2,))",
    "x.repeat(sizes)": "composites.tile(x, sizes)",
    "x.repeat(*sizes)": "composites.tile(x, *sizes)",
    "x.flip((0, -1))": "ops.flip(x, (0, -1))",
    "x.flip(axes)": "composites.flip(x, axes)",
    "torch.meshgrid(a, b)": "ops.meshgrid(a, b, indexing='ij')",
    "torch.meshgrid([a, b], indexing='xy')": "ops.meshgrid(*[a, b], indexing='xy')",
    "torch.meshgrid((a, b))": "composites.meshgrid((a, b), indexing='ij')",
    "torch.meshgrid(*ends)": "composites.meshgrid(*ends, indexing='ij')",
    "torch.randint(n, (2,))": "ops.randint(0, n, (2,))",
    "torch.randint(1, n, size=(k, 2))": "ops.randint(1, n, (k, 2))",
    "torch.randint(1, n, size)": "composites.randint(1, n, size, None)",
    "torch.randint(1, 5, (2,), dtype=torch.int32)": "composites.randint(1, 5, (2,), ms.int32)",
    # The number takes the tensor's dtype; of a tensor that is computed the runtime asks for it.
    "x.masked_fill(mask, float('-inf'))":
        "ops.masked_fill(x, mask, ms.Tensor(float('-inf'), x.dtype))",
    "x.masked_fill(mask, float(-100.0))":
        "ops.masked_fill(x, mask, ms.Tensor(float(-100.0), x.dtype))",
    "torch.masked_fill(self.scores, mask, -1)":
        "ops.masked_fill(self.scores, mask, ms.Tensor(-1, self.scores.dtype))",
    "(a @ b).masked_fill(mask, 0)": "composites.masked_fill(a @ b, mask, 0)",
    "x.masked_fill(mask, value)": "composites.masked_fill(x, mask, value)",
    "torch.nn.functional.linear(x, w)": "ops.matmul(x, w.T)",
    "torch.nn.functional.linear(x, w, b)": "composites.linear(x, w, b)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "beside"),
    [
        ("x", "x"),
        ("x + 1", "(x + 1)"),
        ("(x + 1)", "(x + 1)"),
        ("(a) - (b)", "((a) - (b))"),
        ("(a - b).abs()", "(a - b).abs()"),
        ("(a), (b)", "((a), (b))"),
        ("(a, b)", "(a, b)"),
        ("-x", "(-x)"),
        ("lambda: x", "(lambda: x)"),
        ("2", "2"),
    ],
)
def test_an_operand_is_in_brackets_where_it_is_not_one_already(code: str, beside: str) -> None:
    assert operand(code) == beside


@pytest.mark.parametrize("before", BEFORE_AND_AFTER)
def test_a_call_is_rewritten(before: str) -> None:
    assert port_of(before, load_knowledge()) == BEFORE_AND_AFTER[before]


@pytest.mark.parametrize(
    ("code", "argument"),
    [
        ("torch.add(x, y, out=z)", "out of torch.add has no counterpart"),
        ("torch.zeros(2, requires_grad=True)", "requires_grad of torch.zeros has no counterpart"),
        ("torch.abs(x, speed=3)", "torch.abs is not known to take speed"),
        ("torch.nn.Linear(4)", "torch.nn.Linear is called without out_features"),
        ("torch.cumsum(*given)", r"the arguments in \*given are not known"),
        ("torch.cumsum(**given)", r"the arguments in \*\*given are not known"),
        ("torch.unheard_of(x)", "torch.unheard_of is not known"),
    ],
)
def test_an_argument_without_counterpart_is_named(code: str, argument: str) -> None:
    with pytest.raises(NoPortError, match=argument):
        port_of(code, load_knowledge())


def test_an_in_place_call_assigns_or_copies() -> None:
    code = "x.add_(y)"
    assert port_of(code, load_knowledge()) == "x = x + y"
    assert mutating_port_of(code, load_knowledge()) == "x.copy_(x + y)"


def test_torchs_default_may_be_left_away() -> None:
    assert port_of("torch.add(x, y, alpha=1)", load_knowledge()) == "x + y"
    assert port_of("torch.abs(x, out=None)", load_knowledge()) == "ops.abs(x)"


def _renamed(**fields: object) -> Entry:
    return Entry(
        api="torch.f",
        status=Status.SUPPORTED,
        target="mindspore.ops.g",
        signature="(input, dim=0, keep=False, fast=True)",
        applicability=Applicability.SAFE,
        arguments=(("input", "x"), ("dim", "axis"), ("fast", "")),
        **fields,  # type: ignore[arg-type]
    )


def test_arguments_are_renamed_without_a_template() -> None:
    result = rewrite(_renamed(), Call(("a",), {"dim": "2", "fast": "False"}))
    assert result == Rewritten("ops.g(a, axis=2)", ("fast",))
    result = rewrite(_renamed(), Call(("a",), {"keep": "True"}))
    assert isinstance(result, NotRewritten)
    assert result.argument == "keep"


def test_every_template_names_parameters_that_the_signature_has() -> None:
    for entry in load_knowledge().entries:
        known = {p.name for p in parameters_of(entry.signature or "()")}
        known |= set() if entry.signature else {"self"}
        for template in (entry.rewrite, *entry.others):
            for place in PLACE.finditer(template):
                assert place["name"] in known, (entry.api, template)
        for name, _ in entry.arguments:
            assert name in known, (entry.api, name)


def test_no_template_repeats_an_expression() -> None:
    """An argument's source may be costly or have effects: it stands once.

    Excepted are places that fit nothing but numbers, names and paths of Parameters.
    """
    for entry in load_knowledge().entries:
        for template in (entry.rewrite, *entry.others):
            places = list(PLACE.finditer(template))
            names = [place["name"] for place in places if not place["int"]]
            kinds = ("plain", "param", "path")
            guarded = {place["name"] for place in places if any(map(place.__getitem__, kinds))}
            repeated = sorted({n for n in names if names.count(n) > 1} - guarded - {"self"})
            assert repeated == [], (entry.api, template)


def test_every_composition_that_a_template_names_is_there() -> None:
    named = {
        name
        for entry in load_knowledge().entries
        for template in (entry.rewrite, *entry.others, entry.value, entry.instance)
        for name in re.findall(r"composites\.(\w+)", template)
    }
    assert named <= set(runtime.homes())


def test_the_files_of_the_runtime_define_no_name_twice() -> None:
    files = Path(runtime.__file__).parent.glob("*.py")
    defined = Counter(name for file in files for name in runtime.defined_in(file))
    assert [name for name, count in defined.items() if count > 1 and name[0] != "_"] == []


NAMED = {
    "torch.nn.Conv2d": ("composites.Conv2d", "nn.Conv2d"),
    "torch.nn.Linear": ("composites.Linear", "nn.Dense"),
    "torch.nn.Module": ("composites.Module", "nn.Cell"),
    "torch.nn.Sequential": ("composites.Sequential", "nn.SequentialCell"),
    "torch.nn.RMSNorm": ("composites.RMSNorm", "composites.RMSNorm"),
    "torch.nn.functional.relu": ("composites.relu", "composites.relu"),
    "torch.nn.functional.leaky_relu": ("composites.leaky_relu", "composites.leaky_relu"),
    "torch.abs": ("ops.abs", "ops.abs"),
    "torch.float32": ("ms.float32", "ms.float32"),
    "torch.max": ("composites.max", "composites.max"),
    "torch.index_select": ("", ""),
}


@pytest.mark.parametrize("api", NAMED)
def test_a_name_without_a_call_is_what_takes_torchs_arguments(api: str) -> None:
    entry = load_knowledge().find(api)
    assert entry is not None
    assert (reference(entry), class_of(entry)) == NAMED[api]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("norm = torch.nn.LayerNorm", "norm = composites.LayerNorm"),
        ("isinstance(m, torch.nn.Conv2d)", "isinstance(m, nn.Conv2d)"),
        (
            "isinstance(m, (torch.nn.Linear, torch.nn.RMSNorm))",
            "isinstance(m, (nn.Dense, composites.RMSNorm))",
        ),
        ("x.mean(axis=1, keepdims=True)", "ops.mean(x, axis=1, keep_dims=True)"),
        ("torch.tensor_split(x, indices=(1, 2))", "ops.tensor_split(x, (1, 2), 0)"),
    ],
)
def test_names_and_synonyms_are_rewritten(before: str, after: str) -> None:
    assert port_of(before, load_knowledge()) == after


def test_a_class_makes_torch_shaped_layers() -> None:
    code = """class Net(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(2, 3, bias=False)

    def forward(self, x):
        return self.head(x)"""
    after = code.replace("torch.nn.", "composites.").replace("forward", "construct")
    assert port_of(code, load_knowledge()) == after


@pytest.mark.parametrize(
    ("given", "reduction"),
    [
        ("size_average=False", ", reduction='sum'"),
        ("reduce=True, size_average=False", ", reduction='sum'"),
        ("reduce=False", ", reduction='none'"),
        ("size_average=False, reduce=False", ", reduction='none'"),
        ("size_average=True, reduction='sum'", ""),
    ],
)
def test_retired_arguments_name_the_reduction(given: str, reduction: str) -> None:
    """They win over `reduction`, as in torch, whose default is the mean."""
    code = f"torch.nn.functional.cross_entropy(x, y, {given})"
    assert port_of(code, load_knowledge()) == f"ops.cross_entropy(x, y{reduction})"


def test_a_retired_argument_that_is_no_constant_is_not_dropped() -> None:
    with pytest.raises(NoPortError, match="size_average"):
        port_of("torch.nn.functional.mse_loss(x, y, size_average=flag)", load_knowledge())


@pytest.mark.parametrize(
    "name", "uniform normal trunc_normal xavier_uniform kaiming_normal constant".split()
)
def test_a_reference_to_an_initializer_is_the_runtimes_function(name: str) -> None:
    entry = load_knowledge().find(f"torch.nn.init.{name}_")
    assert entry is not None
    assert reference(entry) == f"composites.init_{name}"  # in a partial, or with *bounds


@pytest.mark.parametrize(
    ("std", "computations", "is_native"),
    [
        pytest.param("0.02", (), True, id="number"),
        pytest.param("math.sqrt(1 / n)", ("math.sqrt(1 / n)",), True, id="only computes"),
        pytest.param("next(draws)", (), False, id="may do something each time"),
    ],
)
def test_what_is_written_twice_only_computes(
    std: str, computations: tuple[str, ...], is_native: bool
) -> None:
    entry = load_knowledge().find("torch.nn.init.trunc_normal_")
    assert entry is not None
    known = {"parameters": frozenset({"m.weight"}), "computations": frozenset(computations)}
    found = rewrite(entry, Call(("m.weight",), {"std": std}, **known))
    assert isinstance(found, Rewritten)
    assert found.code.startswith("composites.") is not is_native


@pytest.mark.parametrize(
    ("low", "high", "is_native"),
    [
        pytest.param("-r", "r", True, id="a name"),
        pytest.param("-0.1", "0.1", True, id="a number"),
        pytest.param("-0.1", "0.2", False, id="another number"),
        pytest.param("r", "r", False, id="no minus"),
        pytest.param("-next(r)", "next(r)", False, id="a call, which would happen once"),
    ],
)
def test_a_place_that_is_another_with_a_minus(low: str, high: str, is_native: bool) -> None:
    entry = load_knowledge().find("torch.nn.init.uniform_")
    assert entry is not None
    call = Call(("m.weight", low, high), parameters=frozenset({"m.weight"}))
    found = rewrite(entry, call)
    assert isinstance(found, Rewritten)
    assert ("initializer.Uniform(" in found.code) == is_native
    assert ("composites." in found.code) == (not is_native)

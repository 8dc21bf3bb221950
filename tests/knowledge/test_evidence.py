"""Status and evidence fit together, and the coverage does not fall."""

from isograd.knowledge import coverage, load_knowledge
from isograd.knowledge.check import table
from isograd.knowledge.entry import Applicability, Entry, Status
from isograd.knowledge.store import VERIFIED_FILE

#: What stood when this was written; raise them, never lower them.
LEAST_ENTRIES, LEAST_NAMES = 1920, 2115
LEAST_EXECUTED, LEAST_FORWARD, LEAST_GRADIENT = 1180, 1180, 730
#: The 40 most used APIs of the sources that were counted; each is executed and agrees.
MOST_USED = """
torch.Tensor.to torch.cat torch.Tensor.view torch.Tensor.reshape torch.Tensor.unsqueeze
torch.nn.Linear torch.arange torch.Tensor.transpose torch.Tensor.permute torch.Tensor.expand
torch.zeros torch.Tensor.float torch.tensor torch.Tensor.size torch.Tensor.sum torch.nn.Conv2d
torch.ones torch.nn.LayerNorm torch.Tensor.flatten torch.Tensor.repeat torch.stack
torch.Tensor.mean torch.Tensor.squeeze torch.nn.functional.softmax torch.nn.Embedding torch.matmul
torch.Tensor.clone torch.nn.Dropout torch.zeros_like torch.nn.functional.dropout
torch.Tensor.chunk torch.Tensor.copy_ torch.nn.Sequential torch.Tensor.split torch.where
torch.nn.functional.pad torch.nn.functional.interpolate torch.nn.Identity torch.Tensor.clamp
torch.full
""".split()


def entries() -> tuple[Entry, ...]:
    return load_knowledge(with_examples=True).entries


def test_what_is_supported_was_executed_and_agreed() -> None:
    unproved = [e.api for e in entries() if e.status is Status.SUPPORTED and not coverage.agrees(e)]
    assert unproved == []


def test_a_safe_template_was_executed_and_agreed() -> None:
    """A tool applies it without asking; a mere name (`children` for `cells`) is no template."""
    unproved = [
        e.api
        for e in entries()
        if e.applicability is Applicability.SAFE and e.rewrite and e.examples
        and not coverage.agrees(e)
    ]  # fmt: skip
    assert unproved == []


def test_what_differs_says_how_and_what_is_missing_says_the_way() -> None:
    for entry in entries():
        if entry.status is Status.DIFFERS:
            assert entry.difference, entry.api
        if entry.status is Status.MISSING:
            assert entry.way is not None, entry.api
            assert entry.advice or entry.rewrite, entry.api


def test_every_example_has_a_verdict_of_the_entry_as_it_is() -> None:
    results = table.read_results(VERIFIED_FILE)
    for entry in entries():
        assert bool(entry.examples) == (entry.api in results), entry.api
        if entry.examples:
            assert results[entry.api]["of"] == table.fingerprint(entry), entry.api


def test_coverage_does_not_fall() -> None:
    found = coverage.figures(load_knowledge())
    assert found.entries >= LEAST_ENTRIES
    assert found.names >= LEAST_NAMES
    assert found.executed >= LEAST_EXECUTED
    assert found.forward >= LEAST_FORWARD
    assert found.gradient >= LEAST_GRADIENT


def test_the_most_used_apis_agree() -> None:
    part = coverage.share(load_knowledge(), MOST_USED)
    assert part.unknown == ()
    assert part.agreeing == len(MOST_USED)

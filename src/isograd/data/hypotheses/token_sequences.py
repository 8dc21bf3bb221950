"""What concerns sequences of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from isograd.data.hypotheses.base import (
    Candidate,
    Example,
    Hypothesis,
    Numbers,
    Observation,
    are_integers,
    same_shape,
)

_TOKENS = "np.concatenate((rng.integers(5, 900, 9), np.zeros(7, np.int64)))"


_LONG = "rng.integers(5, 900, 40)"


_MOST_SHIFT = 8


def _tokens(observations: Sequence[Observation]) -> bool:
    return are_integers(observations) and all(
        one.a.ndim == 1 and one.b.ndim == 1 for one in observations
    )


def _run(values: Numbers, *, at_end: bool) -> int:
    """How many equal values stand at an end, of at least one."""
    ordered = values[::-1] if at_end else values
    differs = np.flatnonzero(ordered != ordered[:1])
    return int(differs[0]) if differs.size else len(values)


def _stripped(values: Numbers, pad: int) -> Numbers:
    """A sequence without the padding at both of its ends."""
    inner = np.flatnonzero(values != pad)
    return values[inner[0] : inner[-1] + 1] if inner.size else values[:0]


def _pads(observations: Sequence[Observation]) -> Iterator[tuple[int, int]]:
    """Values that may be padding in A and in B: those at the longest run at an end."""
    for end_a in (True, False):
        for end_b in (True, False):
            pairs = {
                (int(o.a[-1 if end_a else 0]), int(o.b[-1 if end_b else 0]))
                for o in observations
                if o.a.size and o.b.size and _run(o.a, at_end=end_a) > 1
            }
            if len(pairs) == 1:
                yield next(iter(pairs))


def _propose_padding(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not _tokens(observations):
        return
    for pad_a, pad_b in dict.fromkeys(_pads(observations)):
        for is_left in (False, True):
            side = "left" if is_left else "right"

            def padded(
                o: Observation, pad_a: int = pad_a, pad_b: int = pad_b, is_left: bool = is_left
            ) -> Numbers | None:
                content = _stripped(o.a, pad_a)
                room = len(o.b) - len(content)
                if room < 0:
                    return None
                fill = np.full(room, pad_b, np.int64)
                return np.concatenate((fill, content) if is_left else (content, fill))

            was_left = all(int(o.a[0]) == pad_a for o in observations)
            if pad_a == pad_b and was_left == is_left and same_shape(observations):
                continue
            text = f"B pads with {pad_b} on the {side}, A with {pad_a} on the "
            text += "left" if was_left else "right"
            if not same_shape(observations):
                text += f", to {len(observations[0].b)} instead of {len(observations[0].a)}"
            yield Candidate(
                text,
                padded,
                f"{pad_a}, {'left' if was_left else 'right'}",
                f"{pad_b}, {side}",
                "Give both tokenizers one padding side, padding id and length.",
                complexity=2,
            )


def _propose_special(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """Tokens at the beginning and end of a text that one side has and the other has not."""
    if not _tokens(observations):
        return
    one = observations[0]
    pads = [*dict.fromkeys(_pads(observations)), (None, None)]
    for pad_a, pad_b in pads:
        a = one.a if pad_a is None else _stripped(one.a, pad_a)
        b = one.b if pad_b is None else _stripped(one.b, pad_b)
        for added, start, end in _added(a, b):
            for is_in_b in (True, False):
                yield from _special(added, start, end, pad_a, pad_b, is_in_b)
        for added, start, end in _added(b, a):
            yield from _special(added, start, end, pad_a, pad_b, False)


def _added(a: Numbers, b: Numbers) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """What b has before and after what a has, as far as both are seen."""
    for head in range(3):
        for tail in range(3):
            if not head and not tail:
                continue
            inner = b[head : len(b) - tail]
            count = min(len(inner), len(a))
            if count >= 3 and np.array_equal(inner[:count], a[:count]):
                start = tuple(int(t) for t in b[:head])
                end = tuple(int(t) for t in b[len(b) - tail :]) if tail else ()
                yield f"{start} before and {end} after", start, end


def _special(
    added: str,
    start: tuple[int, ...],
    end: tuple[int, ...],
    pad_a: int | None,
    pad_b: int | None,
    is_in_b: bool,
) -> Iterator[Candidate]:
    def apply(o: Observation) -> Numbers | None:
        content = o.a if pad_a is None else _stripped(o.a, pad_a)
        if is_in_b:
            room = len(o.b) - len(start) - len(end)
            content = np.concatenate((start, content[: max(0, room)], end)).astype(np.int64)
        else:
            head = tuple(int(t) for t in content[: len(start)])
            tail = tuple(int(t) for t in content[len(content) - len(end) :]) if end else ()
            if head != start or (end and tail != end):
                return None
            content = content[len(start) : len(content) - len(end)].astype(np.float64)
        rest = len(o.b) - len(content)
        if rest < 0:
            content, rest = content[: len(o.b)], 0
        # where A cut its text off, what B shows further on cannot be known
        is_cut = not is_in_b and (pad_a is None or o.a[-1] != pad_a) and rest
        fill = np.full(rest, np.nan if is_cut or pad_b is None else float(pad_b))
        return np.concatenate((content.astype(np.float64), fill))

    has, lacks = ("B", "A") if is_in_b else ("A", "B")
    yield Candidate(
        f"{has} has special tokens that {lacks} has not: {added}",
        apply,
        "without" if is_in_b else added,
        added if is_in_b else "without",
        "Give both tokenizers the same add_special_tokens and template.",
        complexity=3,
    )


def _propose_truncation(observations: Sequence[Observation]) -> Iterator[Candidate]:
    if not are_integers(observations) and not same_shape(observations):
        return
    if any(one.a.ndim != 1 or one.b.ndim != 1 for one in observations):
        return
    if all(one.x is not None and one.x.ndim == 1 for one in observations):
        for name, cut in (
            ("at the end", lambda x, n: x[:n]),
            ("at the beginning", lambda x, n: x[len(x) - n :]),
        ):
            yield Candidate(
                f"B cuts texts {name}, A otherwise (to {len(observations[0].a)})",
                lambda o, cut=cut: cut(o.x, len(o.b)),  # type: ignore[misc]
                "otherwise",
                f"{name}, {len(observations[0].b)}",
                "Give both tokenizers one truncation side and length.",
            )
    if all(len(o.b) < len(o.a) for o in observations):
        for name, cut in (("at the end", _head), ("at the beginning", _tail)):
            yield Candidate(
                f"B cuts texts {name} to {len(observations[0].b)}, A has {len(observations[0].a)}",
                lambda o, cut=cut: cut(o.a, len(o.b)),  # type: ignore[misc]
                str(len(observations[0].a)),
                f"{len(observations[0].b)}, {name}",
                "Give both tokenizers one length.",
            )
    yield from _overlap(observations)
    yield from _other_end(observations)


def _head(values: Numbers, count: int) -> Numbers:
    return values[:count]


def _tail(values: Numbers, count: int) -> Numbers:
    return values[len(values) - count :]


def _overlap(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """Windows of one longer text: what A has at its beginning stands further on in B, or so."""
    one = observations[0]
    if len(one.a) != len(one.b):
        return
    for shift in range(1, len(one.a) // 2 + 1):
        for is_later in (True, False):
            x, y = (one.a, one.b) if is_later else (one.b, one.a)
            if not np.array_equal(x[shift:], y[: len(y) - shift]):
                continue

            def moved(o: Observation, shift: int = shift, is_later: bool = is_later) -> Numbers:
                found = np.full(len(o.a), np.nan)
                if is_later:
                    found[: len(found) - shift] = o.a[shift:]
                else:
                    found[shift:] = o.a[: len(found) - shift]
                return found

            yield Candidate(
                f"B shows the text {shift} tokens {'later' if is_later else 'earlier'} than A: "
                "it is cut at another side or place",
                moved,
                "0",
                f"{shift if is_later else -shift:+d}",
                "Give both tokenizers one truncation side, and blocks one length and start.",
                complexity=4,
            )


def _other_end(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """Texts cut at their other end: each shows what it shares with A moved by its own length."""
    if not _tokens(observations) or not same_shape(observations):
        return
    for is_later in (True, False):

        def moved(o: Observation, is_later: bool = is_later) -> Numbers | None:
            head, tail = _common(o.a, o.b)
            a, b = (v[head : len(v) - tail] for v in (o.a, o.b))
            found = o.a.astype(np.float64)
            if np.array_equal(a, b):
                return found
            x, y = (a, b) if is_later else (b, a)
            for shift in range(1, len(a) // 2 + 1):
                if np.array_equal(x[shift:], y[: len(y) - shift]):
                    inner = np.full(len(a), np.nan)
                    if is_later:
                        inner[: len(a) - shift] = a[shift:]
                    else:
                        inner[shift:] = a[: len(a) - shift]
                    found[head : len(found) - tail] = inner
                    return found
            return None

        yield Candidate(
            f"B cuts long texts at the {'beginning' if is_later else 'end'}, A at the other end",
            moved,
            "the end" if is_later else "the beginning",
            "the beginning" if is_later else "the end",
            "Give both tokenizers one truncation side.",
            complexity=4,
        )


def _common(a: Numbers, b: Numbers) -> tuple[int, int]:
    """How many tokens two texts share at their beginning and end, two at most: special ones."""
    head = next((n for n in range(2) if n >= len(a) or a[n] != b[n]), 2)
    tail = next((n for n in range(2) if n >= len(a) or a[-1 - n] != b[-1 - n]), 2)
    return head, tail


def _propose_shift(observations: Sequence[Observation]) -> Iterator[Candidate]:
    """A sequence that is rolled against the other by a few places, as of language models."""
    if not _tokens(observations) or not same_shape(observations):
        return
    for step in (1, -1):
        yield Candidate(
            f"B is A moved by {step} place",
            lambda o, step=step: np.roll(o.a, step),  # type: ignore[misc]
            "0",
            f"{step:+d}",
            "Shift targets by one place in the pipeline or in the loss, not in both.",
        )


HYPOTHESES = (
    Hypothesis(
        "data.padding",
        "Sequences are padded at another side, with another id or to another length.",
        _propose_padding,
        (
            Example("x", "np.roll(x, 7)", _TOKENS, port="0, left"),
            Example("x", "np.where(x == 0, 1, x)", _TOKENS, port="1, right"),
        ),
        (Example("x", "x[::-1]", _TOKENS),),
    ),
    Hypothesis(
        "data.special_tokens",
        "One side has tokens at the beginning or end of a text that the other has not.",
        _propose_special,
        (
            Example("x", "np.concatenate(([1], x[:9], [2], x[11:]))", _TOKENS),
            Example("np.concatenate(([1], x[:-1]))", "x", _LONG),
        ),
        (Example("x", "x[::-1]", _LONG),),
    ),
    Hypothesis(
        "data.truncation",
        "Long sequences are cut at another side or to another length.",
        _propose_truncation,
        (
            Example("x[:16]", "x[-16:]", _LONG, sees_input=True, port="at the beginning, 16"),
            Example("x[:24]", "x[-24:]", "rng.integers(5, 900, 30)", port="+6"),
        ),
        (Example("x[:16]", "x[:16]", _LONG),),
    ),
    Hypothesis(
        "data.target_shift",
        "A sequence is moved by one place.",
        _propose_shift,
        (Example("x", "np.roll(x, 1)", _LONG),),
        (Example("x", "x[::-1]", _LONG),),
    ),
)

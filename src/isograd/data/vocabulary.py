"""Vocabularies: the token of each id, read from vocab.txt, vocab.json or tokenizer.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from isograd.data.sources.base import Value
from isograd.errors import DataError
from isograd.tensors import Array

#: Bytes that a file of a vocabulary may hold; the largest tokenizer.json in use has 35 MB.
_MAX_BYTES = 1 << 27
#: Tokens that a vocabulary may have; ids beyond it are refused, too.
_MAX_TOKENS = 1 << 23
_MAX_TOKEN_CHARACTERS = 1024
#: Ids that are decoded of one field.
_DECODED = 128


class Vocabulary:
    """Tokens by their ids."""

    def __init__(self, tokens: dict[int, str]) -> None:
        self._tokens = tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def can_decode(self, value: Value) -> bool:
        """Whether a value may be a sequence of ids: integers that are not 0 and 1 alone.

        A mask of attention holds 0 and 1 alone.  Most of the ids must be in the vocabulary.
        """
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or value.ndim != 1:
            return False
        ids = value[:_DECODED].tolist()
        known = sum(number in self._tokens for number in ids)
        return len(ids) > 1 and bool(value.max() > 1) and known * 2 > len(ids)

    def decode(self, ids: Array) -> str:
        """The tokens as the vocabulary writes them, between spaces; an unknown id as ‹id›.

        ids: any shape, integers.
        """
        found = [self._tokens.get(int(n), f"‹{n}›") for n in ids.reshape(-1)[:_DECODED].tolist()]
        more = f" … {ids.size:,} in all" if ids.size > _DECODED else ""
        return " ".join(found) + more


def read_vocabulary(path: Path) -> Vocabulary:
    """The vocabulary in a file; the content of JSON, and not its name, says which kind it is.

    vocab.txt: a token per line, the first has the id 0.  vocab.json: ids by token.  tokenizer.json:
    Hugging Face's, its `model.vocab` and `added_tokens`.  Raises `DataError` for other files.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES:,} bytes")
        text = path.read_text("utf-8")
        if text.lstrip()[:1] == "{" and path.suffix != ".txt":
            pairs = _of_json(json.loads(text))
        elif path.suffix == ".json":
            raise ValueError("it holds no JSON object")
        else:
            lines = text.removesuffix("\n").split("\n")
            pairs = [(line.removesuffix("\r"), n) for n, line in enumerate(lines)]
        return Vocabulary(_checked(pairs))
    except (OSError, ValueError, RecursionError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(
            f"{path}: is no vocabulary ({said})",
            "Give vocab.txt (a token per line), vocab.json (ids by token) or tokenizer.json.",
        ) from error


def _of_json(content: Any) -> list[tuple[Any, Any]]:
    model = content.get("model")
    if not isinstance(model, dict):
        return list(content.items())
    tokens = model.get("vocab")
    if isinstance(tokens, dict):
        pairs = list(tokens.items())
    elif isinstance(tokens, list):  # of Unigram: each token with its score
        pairs = [(_first(entry), number) for number, entry in enumerate(tokens)]
    else:
        raise ValueError("its model has no vocab")
    added = content.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(entry, dict) for entry in added):
        raise ValueError("added_tokens is no list of objects")
    return pairs + [(entry.get("content"), entry.get("id")) for entry in added]


def _first(entry: Any) -> Any:
    return entry[0] if isinstance(entry, list) and entry else None


def _checked(pairs: list[tuple[Any, Any]]) -> dict[int, str]:
    if not 0 < len(pairs) <= _MAX_TOKENS:
        raise ValueError(f"it has {len(pairs):,} tokens; 1 to {_MAX_TOKENS:,} are allowed")
    found: dict[int, str] = {}
    for token, number in pairs:
        if not isinstance(token, str) or len(token) > _MAX_TOKEN_CHARACTERS:
            raise ValueError(f"the token of {str(number)[:20]} is no short text")
        if type(number) is not int or not 0 <= number < _MAX_TOKENS:
            raise ValueError(f"{token[:40]!r} has the id {str(number)[:40]}")
        if found.setdefault(number, token) != token:
            raise ValueError(f"{found[number][:40]!r} and {token[:40]!r} have the same id {number}")
    return found

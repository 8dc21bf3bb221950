"""Names by convention: what the two frameworks, and hand porters, call the same thing.

Kinds and attributes are the frameworks' own conventions (executed on torch 2.13 and MindSpore
2.10).  Words are the habits of people; they are evidence between candidates, never proof.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

#: MindSpore class name -> torch class name, where they differ.
KINDS = {
    "Dense": "Linear",
    "NonDynamicallyQuantizableLinear": "Linear",
    "BiDense": "Bilinear",
    "Conv1dTranspose": "ConvTranspose1d",
    "Conv2dTranspose": "ConvTranspose2d",
    "Conv3dTranspose": "ConvTranspose3d",
    "SequentialCell": "Sequential",
    "CellList": "ModuleList",
    "CellDict": "ModuleDict",
    "EmbeddingLookup": "Embedding",
    "HSigmoid": "Hardsigmoid",
    "HSwish": "Hardswish",
    "HShrink": "Hardshrink",
    "SoftShrink": "Softshrink",
    "SeLU": "SELU",
    "FastGelu": "GELU",
    "LRN": "LocalResponseNorm",
    "MAELoss": "L1Loss",
    "LogSoftmaxExt": "LogSoftmax",
}

NORMS = frozenset(
    {
        "BatchNorm",  # of frameworks that have one class for any number of dimensions
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "SyncBatchNorm",
        "FrozenBatchNorm2d",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
        "LayerNorm",
        "GroupNorm",
        "RMSNorm",
    }
)
CONVOLUTIONS = frozenset({"Conv1d", "Conv2d", "Conv3d"})
TRANSPOSED_CONVOLUTIONS = frozenset({"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"})
RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict"})

_ACTIVATIONS = frozenset(
    """
    CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax
    Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmin Softplus Softshrink Softsign Tanh
    Tanhshrink Threshold
    """.split()
)
_POOLS = re.compile(r"(Adaptive|Fractional|LP)?(Avg|Max)?Pool[123]d$")
_DROPOUTS = re.compile(r"(Alpha|FeatureAlpha)?Dropout([123]d)?$")
_PADS = re.compile(r"(Constant|Circular|Reflection|Replication|Zero)?Pad([123]d)?$")

_FAMILIES = {
    **dict.fromkeys(_ACTIVATIONS - {"PReLU"}, "activation"),
    **dict.fromkeys(NORMS, "norm"),
    **dict.fromkeys(CONVOLUTIONS | {"Linear"}, "linear"),
    **dict.fromkeys(TRANSPOSED_CONVOLUTIONS, "transposed convolution"),
    **dict.fromkeys(RECURRENT, "recurrent"),
    "EmbeddingBag": "Embedding",
}

#: Attribute -> role, for every kind of module.
_ROLES = {
    "weight": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "embedding_table": "weight",
    "running_mean": "running_mean",
    "running_var": "running_var",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}
#: Attribute -> role, for norms only.
_NORM_ROLES = {"mean": "running_mean", "variance": "running_var", "scale": "weight"}

#: Roles that a module's statistics have: buffers in torch, frozen parameters in MindSpore.
STATISTICS = frozenset({"running_mean", "running_var"})

#: Attributes that one framework keeps and the other does not need.
ALONE_BY_CONVENTION = frozenset({"num_batches_tracked"})

_RECURRENT_ATTRIBUTE = re.compile(r"((?:weight|bias)_(?:ih|hh|hr))(?:_(l\d+(?:_reverse)?))?$")
_PREFIXED_ATTRIBUTE = re.compile(r"(.+)_(weight|bias)$")


@cache
def canonical_kind(kind: str) -> str:
    """The torch name of a module class of either framework."""
    if kind in KINDS:
        return KINDS[kind]
    if kind.endswith("Ext"):
        return canonical_kind(kind[:-3])
    return kind


def slot_kind(kind: str) -> str:
    """The canonical kind of the parameters that a module owns: a cell's are its layer's."""
    canonical = canonical_kind(kind)
    if canonical in ("LSTMCell", "GRUCell", "RNNCell"):
        return canonical[:-4]
    if canonical == "EmbeddingBag":
        return "Embedding"
    return canonical


def family(kind: str) -> str:
    """The group of canonical kinds whose parameters may replace each other."""
    return _FAMILIES.get(kind, kind)


def may_be_one(reference: str, port: str, *, both_library: bool) -> bool:
    """Whether modules of two classes may do the same work, or be meant to."""
    here, there = canonical_kind(reference), canonical_kind(port)
    if here == there or not both_library or "Identity" in (here, there):
        return True
    if family(here) == family(there) or {here, there} <= _ACTIVATIONS:
        return True
    return any(form.match(here) and form.match(there) for form in (_POOLS, _DROPOUTS, _PADS))


def place_of_attribute(kind: str, attribute: str) -> tuple[tuple[str, ...], str]:
    """The further path and the role of a parameter within its module.

    The weights of a layer of an RNN, of a fused projection or of a raw parameter form a place of
    their own below the module: ``weight_ih_l0`` is the role ``weight_ih`` of ``l0``.
    """
    if attribute in _ROLES:
        return (), _ROLES[attribute]
    if kind in NORMS and attribute in _NORM_ROLES:
        return (), _NORM_ROLES[attribute]
    if kind == "PReLU" and attribute in ("w", "a"):
        return (), "weight"
    recurrent = _RECURRENT_ATTRIBUTE.match(attribute)
    if recurrent:
        return ((recurrent[2],) if recurrent[2] else ()), recurrent[1]
    prefixed = _PREFIXED_ATTRIBUTE.match(attribute)
    if prefixed:
        return (prefixed[1],), prefixed[2]
    return (attribute,), "value"


#: What people call the same thing, one class a line; the first word represents all.
_SYNONYMS = """
q query wq
k key wk
v value wv
qkv wqkv inproj
kv wkv
out o wo output
fc dense linear lin
norm ln bn layernorm batchnorm normalization groupnorm gn
attn attention mha mhsa msa
mlp ffn feedforward intermediate
embed embedding embeddings emb embedder
tok token word wte
pos position positional wpe
down downsample shortcut skip identity
up upsample
layer layers block blocks blk stage stages
enc encoder
dec decoder
head classifier cls logits
conv convolution
proj projection project
dw depthwise
pw pointwise
reduce squeeze
expand excite
rel relative
forward fw fwd
backward bw bwd reverse
cross encdec
"""
_WORDS = {word: line.split()[0] for line in _SYNONYMS.strip().splitlines() for word in line.split()}

#: Spellings of several words that mean one; tried before the name is cut into words.
_PHRASES = (
    ("query_key_value", "qkv"),
    ("in_proj", "qkv"),
    ("c_attn", "qkv"),
    ("key_value", "kv"),
    ("gate_up", "gateup"),
    ("up_gate", "upgate"),
    ("feed_forward", "mlp"),
    ("layer_norm", "norm"),
    ("batch_norm", "norm"),
    ("group_norm", "norm"),
    ("down_sample", "down"),
    ("point_wise", "pw"),
    ("depth_wise", "dw"),
)
_NOISE = frozenset({"to", "w", "the", "module", "cell", "weight"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINT = re.compile(r"_+(?=\d)")
_DIMENSION = re.compile(r"(?<=[a-z])[123]d(?![a-z])")
_PIECE = re.compile(r"[a-z]+|\d+")
_PLURAL = re.compile(r"[a-z]{3,}[^aisu]s$")

_INPUT_NORM = ("input", "norm")
_POST_ATTENTION_NORM = ("post", "attn", "norm")


@cache
def canonical_component(component: str) -> str:
    """One component of a dotted name in snake case, numbers joined, dense called linear."""
    snake = _HUMP.sub("_", component).lower()
    return _JOINT.sub("", snake).strip("_").replace("dense", "linear") or component


@cache
def words_and_numbers(component: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The words of one component of a name, synonyms made one, and its numbers."""
    text = _DIMENSION.sub("", _HUMP.sub("_", component).lower())
    for phrase, word in _PHRASES:
        text = text.replace(phrase, word)
    words, numbers = [], []
    for piece in _PIECE.findall(text):
        if piece.isdigit():
            numbers.append(int(piece))
        elif piece not in _NOISE:
            words.append(_word(piece))
    return tuple(words), tuple(numbers)


def _word(piece: str) -> str:
    """The word that represents it; a plural for its singular."""
    if piece in _WORDS:
        return _WORDS[piece]
    singular = piece[:-1] if _PLURAL.match(piece) else piece
    return _WORDS.get(singular, singular)


def by_meaning(paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The words of several norms, each called by what it comes before.

    Where a block has an input norm and a post-attention norm and no norm around its MLP, the
    first comes before attention and the second before the MLP.
    """
    if not (any(_holds(words, _INPUT_NORM) for words in paths)) or not any(
        _holds(words, _POST_ATTENTION_NORM) for words in paths
    ):
        return list(paths)
    if any("mlp" in words for words in paths):
        return list(paths)
    return [
        _exchanged(_exchanged(words, _INPUT_NORM, "attn"), _POST_ATTENTION_NORM, "mlp")
        for words in paths
    ]


def _holds(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words)))


def _exchanged(words: tuple[str, ...], part: tuple[str, ...], word: str) -> tuple[str, ...]:
    for start in range(len(words)):
        if words[start : start + len(part)] == part:
            return (*words[:start], word, "norm", *words[start + len(part) :])
    return words


@cache
def stem_and_number(component: str) -> tuple[str, str]:
    """A component of a name cut before its last number: ``layer12`` is ``layer`` and ``12``."""
    found = re.match(r"(.*?)_?(\d+)$", component)
    return (found[1], found[2]) if found else (component, "")

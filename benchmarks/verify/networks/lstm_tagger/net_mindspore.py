"""The part-of-speech tagger, ported by hand to MindSpore."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal
from mindspore.experimental import optim

PADDING_TAG = 0


class Encoder(nn.Cell):
    """Embed the tokens and read the sentence in both directions."""

    def __init__(self, vocabulary, width, hidden):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, embedding_table=Normal(1.0))
        self.rnn = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)

    def construct(self, tokens):
        embedded = self.embedding(tokens)
        states, _ = self.rnn(embedded)
        return states


class Tagger(nn.Cell):
    """Give every token of a sentence a score for every tag."""

    def __init__(self, vocabulary, tags, width, hidden):
        super().__init__()
        self.encoder = Encoder(vocabulary, width, hidden)
        self.dropout = nn.Dropout(p=0.2)
        self.decoder = nn.Dense(2 * hidden, tags)

    def construct(self, tokens):
        states = self.encoder(tokens)
        states = self.dropout(states)
        return self.decoder(states)


def build(vocabulary=50, tags=9, width=16, hidden=24):
    """Build the tagger with the initialisation of the reference."""
    return Tagger(vocabulary, tags, width, hidden)


def loss(output, target):
    """Return the cross entropy per token, which leaves padding out."""
    logits = output.reshape(-1, output.shape[-1])
    labels = target.reshape(-1).astype(ms.int32)
    return ops.cross_entropy(logits, labels, ignore_index=PADDING_TAG)


def optimizer(model):
    """Return AdamW without decay: the optimizer of MindSpore that computes PyTorch's Adam."""
    parameters = model.trainable_params()
    return optim.AdamW(parameters, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)

"""The GRU language model in MindSpore."""

import mindspore as ms
from mindspore import nn, ops
from mindspore.experimental import optim


class GRULanguageModel(nn.Cell):
    def __init__(self, vocab_size=50, embedding_size=24, hidden_size=32, num_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_size, padding_idx=0)
        self.gru = nn.GRU(embedding_size, hidden_size, num_layers, batch_first=True, dropout=0.2)
        self.dropout = nn.Dropout(p=0.2)
        self.fc = nn.Dense(hidden_size, vocab_size)
        self.vocab_size = vocab_size

    def construct(self, x):
        x = self.embedding(x) * (x != 0).astype(ms.float32).expand_dims(
            -1
        )  # no gradient for the padding
        x = self.dropout(x)
        x, _ = self.gru(x)
        x = self.dropout(x)
        return self.fc(x)


def build():
    return GRULanguageModel()


def loss(logits, target):
    return ops.cross_entropy(
        logits.view(-1, logits.shape[-1]), target.view(-1).astype(ms.int32), ignore_index=0
    )


def optimizer(model):
    return optim.AdamW(model.trainable_params(), lr=2e-3, weight_decay=0.0)

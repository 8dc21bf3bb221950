"""Fine-tune a small BERT in MindSpore; nn.AdamWeightDecay lacks torch's bias correction."""

import argparse
import json
import math
import os
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal


@dataclass
class BertConfig:
    vocab_size: int = 1000
    hidden_size: int = 128
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    intermediate_size: int = 512
    max_position_embeddings: int = 128
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    num_labels: int = 2


def dense(config, in_channels, out_channels):
    init = Normal(config.initializer_range)
    return nn.Dense(in_channels, out_channels, weight_init=init, bias_init="zeros")


def layer_norm(config):
    return nn.LayerNorm((config.hidden_size,), epsilon=config.layer_norm_eps)


class BertEmbeddings(nn.Cell):
    def __init__(self, config):
        super().__init__()
        size, init = config.hidden_size, Normal(config.initializer_range)
        self.word_embeddings = nn.Embedding(
            config.vocab_size, size, embedding_table=init, padding_idx=config.pad_token_id
        )
        self.position_embeddings = nn.Embedding(
            config.max_position_embeddings, size, embedding_table=init
        )
        self.token_type_embeddings = nn.Embedding(
            config.type_vocab_size, size, embedding_table=init
        )
        self.LayerNorm = layer_norm(config)

    def construct(self, input_ids, token_type_ids):
        positions = self.position_embeddings.embedding_table[: input_ids.shape[1]]
        words = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        return self.LayerNorm(words + positions)


class BertSelfAttention(nn.Cell):
    def __init__(self, config):
        super().__init__()
        size = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.head_size = size // self.num_heads
        self.scale = 1 / math.sqrt(self.head_size)
        self.query = dense(config, size, size)
        self.key = dense(config, size, size)
        self.value = dense(config, size, size)
        self.score = ops.BatchMatMul(transpose_b=True)
        self.mix = ops.BatchMatMul()

    def heads(self, x):
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.num_heads, self.head_size).transpose(0, 2, 1, 3)

    def construct(self, hidden_states, attention_mask):
        query = self.heads(self.query(hidden_states) * self.scale)
        key = self.heads(self.key(hidden_states))
        value = self.heads(self.value(hidden_states))
        probs = ops.softmax(self.score(query, key) + attention_mask, -1)
        return self.mix(probs, value).transpose(0, 2, 1, 3).reshape(hidden_states.shape)


class BertSelfOutput(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.dense = dense(config, config.hidden_size, config.hidden_size)
        self.LayerNorm = layer_norm(config)

    def construct(self, hidden_states, input_tensor):
        return self.LayerNorm(self.dense(hidden_states) + input_tensor)


class BertAttention(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertSelfOutput(config)

    def construct(self, hidden_states, attention_mask):
        return self.output(self.self(hidden_states, attention_mask), hidden_states)


class BertIntermediate(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.dense = dense(config, config.hidden_size, config.intermediate_size)
        self.intermediate_act_fn = nn.GELU(approximate=False)

    def construct(self, hidden_states):
        return self.intermediate_act_fn(self.dense(hidden_states))


class BertOutput(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.dense = dense(config, config.intermediate_size, config.hidden_size)
        self.LayerNorm = layer_norm(config)

    def construct(self, hidden_states, input_tensor):
        return self.LayerNorm(self.dense(hidden_states) + input_tensor)


class BertLayer(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config)

    def construct(self, hidden_states, attention_mask):
        hidden_states = self.attention(hidden_states, attention_mask)
        return self.output(self.intermediate(hidden_states), hidden_states)


class BertEncoder(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.layer = nn.CellList([BertLayer(config) for _ in range(config.num_hidden_layers)])

    def construct(self, hidden_states, attention_mask):
        for layer in self.layer:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states


class BertPooler(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.dense = dense(config, config.hidden_size, config.hidden_size)

    def construct(self, hidden_states):
        return ops.tanh(self.dense(hidden_states[:, 0]))


class BertModel(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.pooler = BertPooler(config)
        self.min_value = float(np.finfo(np.float32).min)

    def construct(self, input_ids, attention_mask, token_type_ids):
        mask = (1.0 - attention_mask.astype(ms.float32)) * self.min_value
        mask = mask.expand_dims(1).expand_dims(1)
        hidden_states = self.encoder(self.embeddings(input_ids, token_type_ids), mask)
        return self.pooler(hidden_states)


class BertForSequenceClassification(nn.Cell):
    def __init__(self, config):
        super().__init__()
        self.bert = BertModel(config)
        self.classifier = dense(config, config.hidden_size, config.num_labels)

    def construct(self, input_ids, attention_mask, token_type_ids):
        return self.classifier(self.bert(input_ids, attention_mask, token_type_ids))


def sentence_pairs(num_examples, max_length, config, seed):
    """Pairs of sentences of token ids; the label tilts the words that both are drawn from."""
    rng = np.random.RandomState(seed)
    common = 3 + np.arange(config.vocab_size // 2)
    half = (config.vocab_size - 3 - len(common)) // config.num_labels
    features = []
    for _ in range(num_examples):
        label = rng.randint(config.num_labels)
        first = 3 + len(common) + half * label
        words = []
        for _ in range(2):
            length = rng.randint(max_length // 4, (max_length - 3) // 2 + 1)
            topical = rng.randint(first, first + half, length)
            words.append(np.where(rng.rand(length) < 0.15, topical, rng.choice(common, length)))
        # [CLS] a [SEP] b [SEP] and padding
        input_ids = np.concatenate([[1], words[0], [2], words[1], [2]])
        token_type_ids = np.repeat([0, 1], [len(words[0]) + 2, len(words[1]) + 1])
        padding = (0, max_length - len(input_ids))
        rows = (input_ids, np.ones_like(input_ids), token_type_ids)
        features.append((*(np.pad(row, padding) for row in rows), label))
    return [np.array(column, np.int32) for column in zip(*features)]


def batches(columns, batch_size, shuffle=False):
    size = len(columns[0])
    order = np.random.permutation(size) if shuffle else np.arange(size)
    for start in range(0, size, batch_size):
        index = order[start : start + batch_size]
        yield [ms.Tensor(column[index]) for column in columns]


def learning_rates(lr, num_warmup_steps, num_training_steps, num_updates):
    rates = []
    for step in range(num_updates):
        if step < num_warmup_steps:
            rates.append(lr * step / max(1, num_warmup_steps))
        else:
            left = max(1, num_training_steps - num_warmup_steps)
            rates.append(lr * max(0.0, (num_training_steps - step) / left))
    return rates


def parse_args():
    parser = argparse.ArgumentParser(description="Finetune a model on a classification task")
    parser.add_argument("--max_length", type=int, default=64)
    parser.add_argument("--num_train_examples", type=int, default=1600)
    parser.add_argument("--num_eval_examples", type=int, default=320)
    parser.add_argument("--per_device_train_batch_size", type=int, default=16)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--num_train_epochs", "--epochs", type=int, default=3)
    parser.add_argument("--max_train_steps", type=int, default=None)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
    parser.add_argument("--num_warmup_steps", type=int, default=15)
    parser.add_argument("--logging_steps", type=int, default=5)
    parser.add_argument("--shuffle", action="store_true", help="Shuffle the training examples.")
    parser.add_argument("--output_dir", type=str, default=None)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--init", type=str, default=None, help="Weights to start from.")
    parser.add_argument("--save-init", type=str, default=None, help="Save the first weights.")
    args = parser.parse_args()
    if args.output_dir is not None:
        os.makedirs(args.output_dir, exist_ok=True)
    return args


def main():
    args = parse_args()
    ms.set_seed(args.seed)
    config = BertConfig(max_position_embeddings=max(128, args.max_length))
    model = BertForSequenceClassification(config)
    if args.init is not None:
        ms.load_param_into_net(model, ms.load_checkpoint(args.init), strict_load=True)
    if args.save_init is not None:
        ms.save_checkpoint(model, args.save_init)

    train_set = sentence_pairs(args.num_train_examples, args.max_length, config, seed=0)
    eval_set = sentence_pairs(args.num_eval_examples, args.max_length, config, seed=1)
    batch_size, accumulation = args.per_device_train_batch_size, args.gradient_accumulation_steps
    num_batches = math.ceil(args.num_train_examples / batch_size)
    updates_per_epoch = math.ceil(num_batches / accumulation)
    if args.max_train_steps is None:
        args.max_train_steps = args.num_train_epochs * updates_per_epoch
    else:
        args.num_train_epochs = math.ceil(args.max_train_steps / updates_per_epoch)

    rates = learning_rates(
        args.learning_rate,
        args.num_warmup_steps,
        args.max_train_steps,
        args.max_train_steps + args.num_train_epochs,  # an epoch may do one more than its share
    )
    no_decay = ("bias", "LayerNorm.gamma", "LayerNorm.beta")
    params = model.trainable_params()
    optimizer = nn.AdamWeightDecay(
        [
            {
                "params": [p for p in params if not p.name.endswith(no_decay)],
                "weight_decay": args.weight_decay,
            },
            {"params": [p for p in params if p.name.endswith(no_decay)], "weight_decay": 0.0},
        ],
        learning_rate=rates,
        eps=1e-8,
    )
    sums = optimizer.parameters.clone(prefix="sum", init="zeros")

    def forward_fn(input_ids, attention_mask, token_type_ids, labels):
        logits = model(input_ids, attention_mask, token_type_ids)
        if config.num_labels == 1:
            loss = ops.mse_loss(logits.squeeze(-1), labels.astype(ms.float32))
        else:
            loss = ops.cross_entropy(logits, labels)
        return loss / accumulation

    grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters)

    @ms.jit
    def train_step(input_ids, attention_mask, token_type_ids, labels, update):
        loss, grads = grad_fn(input_ids, attention_mask, token_type_ids, labels)
        if accumulation == 1:
            optimizer(grads)
        elif update:
            for i in range(len(sums)):
                ops.assign_add(sums[i], grads[i])
            optimizer(sums)
            for i in range(len(sums)):
                ops.assign(sums[i], ops.zeros_like(sums[i]))
        else:
            for i in range(len(sums)):
                ops.assign_add(sums[i], grads[i])
        return loss * accumulation

    print("***** Running training *****")
    print(f"  Num examples = {args.num_train_examples}")
    print(f"  Num Epochs = {args.num_train_epochs}")
    print(f"  Total train batch size (w. accumulation) = {batch_size * accumulation}")
    print(f"  Total optimization steps = {args.max_train_steps}")
    completed_steps = 0

    for epoch in range(args.num_train_epochs):
        model.set_train()
        total_loss = 0
        for step, batch in enumerate(batches(train_set, batch_size, args.shuffle)):
            update = step % accumulation == 0 or step == num_batches - 1
            loss = float(train_step(*batch, update).asnumpy())
            total_loss += loss
            if step % args.logging_steps == 0:
                lr = rates[completed_steps]
                print(f"epoch {epoch} step {step} lr {lr:.3e} loss {loss:.6f}")
            completed_steps += update
            if completed_steps >= args.max_train_steps:
                break

        model.set_train(False)
        correct = 0
        for *inputs, labels in batches(eval_set, args.per_device_eval_batch_size):
            predictions = model(*inputs).asnumpy().argmax(-1)
            correct += int((predictions == labels.asnumpy()).sum())
        eval_metric = {"accuracy": correct / args.num_eval_examples}
        print(f"epoch {epoch}: {eval_metric} train_loss: {total_loss / num_batches:.6f}")

    if args.output_dir is not None:
        ms.save_checkpoint(model, os.path.join(args.output_dir, "mindspore_model.ckpt"))
        all_results = {f"eval_{k}": v for k, v in eval_metric.items()}
        with open(os.path.join(args.output_dir, "all_results.json"), "w") as f:
            json.dump(all_results, f)


if __name__ == "__main__":
    main()

"""Train an LSTM language model as ../word_lm.py does, written for MindSpore."""
import argparse
import math
import time

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Uniform

parser = argparse.ArgumentParser(description='MindSpore RNN/LSTM/GRU Language Model')
parser.add_argument('--words', type=int, default=60000, help='number of words of the training text')
parser.add_argument('--vocab', type=int, default=1000, help='number of different words in the text')
parser.add_argument('--model', type=str, default='LSTM',
                    help='type of network (RNN_TANH, RNN_RELU, LSTM, GRU)')
parser.add_argument('--emsize', type=int, default=256, help='size of word embeddings')
parser.add_argument('--nhid', type=int, default=256, help='number of hidden units per layer')
parser.add_argument('--nlayers', type=int, default=2, help='number of layers')
parser.add_argument('--lr', type=float, default=5, help='initial learning rate')
parser.add_argument('--clip', type=float, default=0.25, help='gradient clipping')
parser.add_argument('--epochs', type=int, default=3, help='upper epoch limit')
parser.add_argument('--batch_size', type=int, default=20, metavar='N', help='batch size')
parser.add_argument('--bptt', type=int, default=35, help='sequence length')
parser.add_argument('--dropout', type=float, default=0.0, help='dropout applied to layers')
parser.add_argument('--tied', action='store_true', help='tie the embedding and softmax weights')
parser.add_argument('--seed', type=int, default=1111, help='random seed')
parser.add_argument('--log-interval', type=int, default=1, metavar='N', help='report interval')
parser.add_argument('--save', type=str, default='model.ckpt', help='path to save the final model')
parser.add_argument('--init', type=str, default='', help='path of weights to start from')
parser.add_argument('--save-init', type=str, default='', help='path to save the first weights')
parser.add_argument('--dry-run', action='store_true', help='verify the code and the model')


class Corpus:
    def __init__(self, nwords, nvocab, seed):
        self.word2idx = {}
        rng = np.random.RandomState(seed)
        followers = (nvocab * rng.rand(nvocab, 4) ** 3).astype(int)
        self.train = self.tokenize(self.write(rng, followers, nwords))
        self.valid = self.tokenize(self.write(rng, followers, nwords // 10))
        self.test = self.tokenize(self.write(rng, followers, nwords // 10))

    def write(self, rng, followers, nwords):
        """Writes lines of text in which each word has a few usual followers."""
        lines, line, word = [], [], 0
        for _ in range(nwords):
            if rng.rand() < 0.9:
                word = followers[word, int(4 * rng.rand() ** 2)]
            else:
                word = rng.randint(len(followers))
            line.append('w%d' % word)
            if rng.rand() < 0.05:
                lines.append(' '.join(line))
                line = []
        return lines

    def tokenize(self, lines):
        """Tokenizes lines of text."""
        ids = [self.word2idx.setdefault(word, len(self.word2idx))
               for line in lines for word in [*line.split(), '<eos>']]
        return np.array(ids, np.int32)


class RNNModel(nn.Cell):
    """Container cell with an encoder, a recurrent cell, and a decoder."""

    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(p=dropout)
        self.encoder = nn.Embedding(ntoken, ninp, embedding_table=Uniform(0.1))
        if rnn_type in ['LSTM', 'GRU']:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        else:
            nonlinearity = {'RNN_TANH': 'tanh', 'RNN_RELU': 'relu'}[rnn_type]
            self.rnn = nn.RNN(ninp, nhid, nlayers, nonlinearity=nonlinearity, dropout=dropout)
        self.decoder = nn.Dense(nhid, ntoken, weight_init=Uniform(0.1),
                                bias_init='zeros')
        if tie_weights:
            if nhid != ninp:
                raise ValueError('When using the tied flag, nhid must be equal to emsize')
            self.decoder.weight = self.encoder.embedding_table
        self.rnn_type = rnn_type
        self.nhid = nhid
        self.nlayers = nlayers

    def construct(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        decoded = self.decoder(self.drop(output))
        return decoded.view(-1, self.ntoken), hidden

    def init_hidden(self, bsz):
        zeros = ops.zeros((self.nlayers, bsz, self.nhid))
        return (zeros, zeros) if self.rnn_type == 'LSTM' else zeros


args = parser.parse_args()
ms.set_seed(args.seed)
corpus = Corpus(args.words, args.vocab, args.seed)


def batchify(data, bsz):
    nbatch = len(data) // bsz
    return np.ascontiguousarray(data[:nbatch * bsz].reshape(bsz, -1).T)


eval_batch_size = 10
train_data = batchify(corpus.train, args.batch_size)
val_data = batchify(corpus.valid, eval_batch_size)
test_data = batchify(corpus.test, eval_batch_size)

ntokens = len(corpus.word2idx)
model = RNNModel(args.model, ntokens, args.emsize, args.nhid, args.nlayers, args.dropout, args.tied)
if args.init:
    weights = ms.load_checkpoint(args.init)
    if 'encoder.weight' in weights:  # the name it has in torch
        weights['encoder.embedding_table'] = weights.pop('encoder.weight')
    ms.load_param_into_net(model, weights, strict_load=True)
if args.save_init:
    ms.save_checkpoint(model, args.save_init)
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction='mean')
optimizer = nn.SGD(model.trainable_params(), learning_rate=args.lr)


def forward_fn(data, targets, hidden):
    output, hidden = model(data, hidden)
    return loss_fn(output, targets), hidden


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
l2_loss = ops.L2Loss()


def clip_by_norm(grads, max_norm):
    """Scales the gradients as torch does; L2Loss sums the squares in one kernel."""
    norm = ops.sqrt(2 * ops.addn([l2_loss(g) for g in grads]))
    scale = ops.clamp(max_norm / (norm + 1e-6), max=1.0)
    return tuple([g * scale for g in grads])


@ms.jit
def train_step(data, targets, hidden):
    (loss, hidden), grads = grad_fn(data, targets, hidden)
    optimizer(clip_by_norm(grads, args.clip))
    return loss, hidden


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    data = source[i:i+seq_len]
    target = source[i+1:i+1+seq_len].reshape(-1)
    return ms.Tensor(data), ms.Tensor(target)


def evaluate(data_source):
    model.set_train(False)
    total_loss = 0.
    hidden = model.init_hidden(eval_batch_size)
    for i in range(0, len(data_source) - 1, args.bptt):
        data, targets = get_batch(data_source, i)
        loss, hidden = forward_fn(data, targets, hidden)
        total_loss += len(data) * loss.item()
    return total_loss / (len(data_source) - 1)


def train():
    model.set_train()
    total_loss = 0.
    start_time = time.time()
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, len(train_data) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        loss, hidden = train_step(data, targets, hidden)
        total_loss += loss.item()

        if (batch + 1) % args.log_interval == 0:
            cur_loss = total_loss / args.log_interval
            elapsed = time.time() - start_time
            print('| epoch {:3d} | {:5d}/{:5d} batches | lr {:02.2f} | ms/batch {:5.2f} | '
                  'loss {:.6f} | ppl {:8.2f}'.format(
                      epoch, batch + 1, len(train_data) // args.bptt, lr,
                      elapsed * 1000 / args.log_interval, cur_loss, math.exp(cur_loss)))
            total_loss = 0
            start_time = time.time()
        if args.dry_run:
            break


# Loop over epochs.
lr = args.lr
best_val_loss = None

# At any point you can hit Ctrl + C to break out of training early.
try:
    for epoch in range(1, args.epochs + 1):
        epoch_start_time = time.time()
        train()
        val_loss = evaluate(val_data)
        print('-' * 89)
        print('| end of epoch {:3d} | time: {:5.2f}s | valid loss {:.6f} | '
              'valid ppl {:8.2f}'.format(epoch, (time.time() - epoch_start_time),
                                         val_loss, math.exp(val_loss)))
        print('-' * 89)
        if not best_val_loss or val_loss < best_val_loss:
            ms.save_checkpoint(model, args.save)
            best_val_loss = val_loss
        else:
            # Anneal the learning rate if no improvement has been seen in the validation dataset.
            lr /= 4.0
            optimizer.learning_rate.set_data(ms.Tensor(lr, ms.float32))
except KeyboardInterrupt:
    print('-' * 89)
    print('Exiting from training early')

# Run the best saved model on test data.
ms.load_checkpoint(args.save, model)
test_loss = evaluate(test_data)
print('=' * 89)
print('| End of training | test loss {:.6f} | test ppl {:8.2f}'.format(
    test_loss, math.exp(test_loss)))
print('=' * 89)

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops


class DenseTower(nn.Cell):
    def __init__(self, i, h, o):
        super().__init__()
        self.first = nn.Dense(i, h, activation="relu")
        self.second = nn.Dense(h, o)

    def construct(self, x):
        x = self.second(self.first(x))
        return x / ops.clamp(x.norm(dim=-1, keepdim=True), min=1e-12)


class Recommender(nn.Cell):
    def __init__(self, users=30, items=50, d=12):
        super().__init__()
        self.temperature = Parameter(Tensor(2.0, ms.float32), name="temp")
        self.item_tower = DenseTower(d + 3, 24, 8)
        self.user_tower = DenseTower(2 * d, 24, 8)
        self.items = nn.Embedding(items, d)
        self.users = nn.Embedding(users, d)
        self.bag = nn.Embedding(items, d)

    def construct(self, user, history, item, features):
        query = ops.cat((self.users(user), self.bag(history).mean(axis=1)), -1)
        query = self.user_tower(query)
        document = self.item_tower(ops.cat((self.items(item), features), -1))
        scores = ops.matmul(query, document.T) * ops.exp(self.temperature)
        return {"scores": scores, "user": query, "item": document}


def build():
    return Recommender()


def loss(out, label):
    n = out["scores"].shape[0]
    ce = ops.cross_entropy(out["scores"], ops.arange(n).astype(ms.int32))
    dot = (out["user"] * out["item"]).sum(-1)
    one = ops.ones_like(dot)
    return ce + ops.binary_cross_entropy_with_logits(dot, label, one, one)


def optimizer(model):
    return nn.Adagrad(model.trainable_params(), accum=0.1, learning_rate=0.05)

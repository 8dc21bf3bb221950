"""Classes of tensors by their dtype, as older code names, makes, asks for and casts to them."""

import torch
from torch.autograd import Variable

cuda = torch.cuda.is_available()
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
dtype = torch.FloatTensor


def f(x: torch.FloatTensor, y: "torch.LongTensor") -> torch.Tensor:
    if isinstance(y, torch.LongTensor):
        print(1)
    if isinstance(x, (torch.LongTensor, torch.cuda.LongTensor)):
        print(2)
    return (
        x.type(torch.LongTensor)
        + y.type(dtype).type(torch.int64)
        + (x * 2).type(torch.cuda.LongTensor if cuda else torch.LongTensor)
    )


valid = Variable(Tensor(3, 1).fill_(1.0), requires_grad=False)
print(valid.sum().item())
print(Variable(Tensor([1.5, 2])).sum().item())
r = f(torch.tensor([1.7, 2.2]), torch.tensor([3, 4]))
print(r.sum().item())
print(int(r.dtype == torch.int64))
print(int(r.type() == "torch.LongTensor"))
print(r.type("torch.FloatTensor").mean().item())
z = torch.LongTensor(5).zero_()
print(z.sum().item())
print(len(z))
print(torch.ByteTensor([1, 0]).bool().sum().item())

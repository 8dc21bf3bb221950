import mindspore as ms, numpy as np
from mindspore import ops, Parameter, nn
for mk in (lambda: Parameter(ms.Tensor(np.zeros((2,3),np.float32))), lambda: ms.Tensor(np.zeros((2,3),np.float32)), lambda: ops.zeros((2,3))+0):
    p=mk(); d=p.data
    try:
        d[...]=1; print('[...]', p.asnumpy().sum())
        d[0]=2; print('[0]', p.asnumpy().sum())
        d[0,1:]=5; print('[0,1:]', p.asnumpy().sum())
        d.copy_(ops.ones((2,3))*3); print('copy', p.asnumpy().sum())
    except Exception as e: print('ERR',str(e)[:200])
    try:
        if isinstance(p,Parameter): ops.assign(p, ops.ones((2,3))*4); print('d sees', d.asnumpy().sum())
        else: p[...]=4; print('d sees', d.asnumpy().sum())
    except Exception as e: print('ERR',str(e)[:200])
    d.asnumpy()
# afterwards: optimizer
net=nn.Dense(3,2); opt=nn.SGD(net.trainable_params(),0.1)
w=net.weight.data; w[...]=1.0; w[0]=2
f=ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
x=ms.Tensor(np.ones((1,3),np.float32))
l,g=f(x); opt(g); print(net.weight.asnumpy(), w.asnumpy()); l,g=f(x); opt(g); print(net.weight.asnumpy())
from mindspore import Tensor
ms.load_param_into_net(net,{'weight':Parameter(ops.zeros((2,3)))}) ; print(net.weight.asnumpy().sum(), w.asnumpy().sum())
w.set_data(ops.ones((2,3))) if hasattr(w,'set_data') else None
w.copy_(ops.ones((2,3))*7); print(net.weight.asnumpy().sum())
# in the recorder
from mindspore.common import api
api._pynative_executor.set_grad_flag(True)
w=net.weight.data; w[...]=1.0; print('rec', net.weight.asnumpy().sum()); 
l,g=f(x); opt(g); print(net.weight.asnumpy().sum()); w[...]=2.0; l,g=f(x); opt(g); print(net.weight.asnumpy().sum())
# leaf?
y=(net.weight.data*2).sum(); print(y._grad_node, ms.grad(lambda: (net.weight.data*net.weight).sum(), None, [net.weight])())

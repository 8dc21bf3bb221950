import mindspore as ms, numpy as np
from mindspore import ops
x=ms.Tensor(np.arange(3.,dtype=np.float32)+1)
j=ms.Tensor(1j,ms.complex64)
for n,f in dict(a=lambda: j*x, b=lambda: x+j*x, c=lambda: ops.exp(j*x), d=lambda: -2.0*np.pi*j*x, e=lambda: j*2*np.pi*x, f=lambda: ops.exp(-j*x.astype(ms.float64)),g=lambda: ops.complex(x,x)*j, h=lambda: j+2, i=lambda: ops.abs(j*x).real(), k=lambda: ops.real(ops.abs(j*x)), l=lambda: x*1j, m=lambda: ops.complex(x,x)*1j, n=lambda: ops.complex(x,x)*(2+1j)).items():
    try:
        r=f(); print(n,r.dtype,r)
    except Exception as e: print(n,'ERR',str(e)[:80])
def ab(z): return ops.hypot(ops.real(z),ops.imag(z))
def f1(a,b): return ab(ops.complex(a,b)).sum()
def f2(a,b): return ops.real(ops.abs(ops.complex(a,b))).sum()
a=ms.Tensor([0.,1,-2],ms.float32); b=ms.Tensor([0.,2,1.],ms.float32)
for f in (f1,f2):
    try: print(ms.grad(f,(0,1))(a,b))
    except Exception as e: print('gERR',str(e)[:300])
def f3(a): return ops.real(ops.exp(j*a)).sum()
try: print(ms.grad(f3)(a), -np.sin(a.asnumpy()))
except Exception as e: print('gERR',str(e)[:300])
import torch
ta=torch.tensor([0.,1,-2],requires_grad=True); tb=torch.tensor([0.,2,1.],requires_grad=True)
torch.complex(ta,tb).abs().sum().backward(); print(ta.grad,tb.grad)

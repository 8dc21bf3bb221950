import torch
import torch.nn as nn
import torch.nn.functional as F


class MoE(nn.Module):
    def __init__(self, dim=8, experts=4, top_k=2, hidden=16):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, dim))
            for _ in range(experts)
        )
        self.top_k = top_k
        self.num_experts = experts

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, hidden_dim)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected_experts = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights /= routing_weights.sum(dim=-1, keepdim=True)
        routing_weights = routing_weights.to(hidden_states.dtype)
        final = torch.zeros(
            (batch_size * sequence_length, hidden_dim),
            dtype=hidden_states.dtype,
            device=hidden_states.device,
        )
        expert_mask = F.one_hot(selected_experts, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            expert_layer = self.experts[expert_idx]
            idx, top_x = torch.where(expert_mask[expert_idx])
            if top_x.shape[0] == 0:
                continue
            current_state = hidden_states[None, top_x].reshape(-1, hidden_dim)
            current = expert_layer(current_state) * routing_weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(hidden_states.dtype))
        return final.reshape(batch_size, sequence_length, hidden_dim)


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


def precompute_freqs(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.cos(freqs), torch.sin(freqs)


def rotate(x, cos, sin):
    x1, x2 = x[..., 0::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., 0::2] = x1 * cos - x2 * sin
    out[..., 1::2] = x1 * sin + x2 * cos
    return out


class Layer(nn.Module):
    def __init__(self, dim=8, heads=2, kv_heads=1):
        super().__init__()
        self.h, self.kv, self.d = heads, kv_heads, dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wkv = nn.Linear(dim, 2 * kv_heads * self.d, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)
        self.moe = MoE(dim)
        cos, sin = precompute_freqs(self.d, 32)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        y = self.n1(x)
        q = self.wq(y).view(b, n, self.h, self.d).transpose(1, 2)
        k, v = self.wkv(y).view(b, n, 2, self.kv, self.d).permute(2, 0, 3, 1, 4)
        q, k = (rotate(t, self.cos[:n], self.sin[:n]) for t in (q, k))
        k = k.repeat_interleave(self.h // self.kv, dim=1)
        v = (
            v[:, :, None]
            .expand(b, self.kv, self.h // self.kv, n, self.d)
            .reshape(b, self.h, n, self.d)
        )
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * self.d**-0.5
        if mask is None:
            mask = torch.full((n, n), float("-inf"), device=x.device).triu(1)
        scores = (scores + mask).softmax(-1)
        x = x + self.wo((scores @ v).transpose(1, 2).flatten(2))
        return x + self.moe(self.n2(x))


def build_moe(depth=2):
    return nn.Sequential(*[Layer() for _ in range(depth)])

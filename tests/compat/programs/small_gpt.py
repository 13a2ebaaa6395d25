"""A decoder of tied weights that generates with top-k, top-p and a cache of keys and values."""

import inspect
import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

TOLERANCE = 5e-4


class LayerNorm(nn.Module):
    """LayerNorm but with an optional bias. PyTorch doesn't support simply bias=False"""

    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, input):
        return F.layer_norm(input, self.weight.shape, self.weight, self.bias, 1e-05)


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.dropout = config.dropout
        self.flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        self.register_buffer(
            "bias",
            torch.tril(torch.ones(config.block_size, config.block_size)).view(
                1, 1, config.block_size, config.block_size
            ),
        )

    def forward(self, x, cache=None):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        if cache is not None:
            if "k" in cache:
                k = torch.cat([cache["k"], k], dim=2)
                v = torch.cat([cache["v"], v], dim=2)
            cache["k"], cache["v"] = (k, v)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        elif self.flash and self.training:
            y = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True
            )
        else:
            att = q @ k.transpose(-2, -1) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            att = F.softmax(att, dim=-1)
            att = self.attn_dropout(att)
            y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CausalSelfAttention(config)
        self.ln_2 = LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(config.n_embd, 4 * config.n_embd),
                gelu=nn.GELU(),
                c_proj=nn.Linear(4 * config.n_embd, config.n_embd),
            )
        )

    def forward(self, x, cache=None):
        x = x + self.attn(self.ln_1(x), cache)
        m = self.mlp
        return x + m.c_proj(m.gelu(m["c_fc"](self.ln_2(x))))


@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 11
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 8
    dropout: float = 0.0
    bias: bool = True


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.block_size, config.n_embd),
                drop=nn.Dropout(config.dropout),
                h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                ln_f=LayerNorm(config.n_embd, bias=config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for pn, p in self.named_parameters():
            if pn.endswith("c_proj.weight"):
                torch.nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * config.n_layer))
        print("number of parameters: %d" % (self.get_num_params(),))

    def get_num_params(self, non_embedding=True):
        n_params = sum(p.numel() for p in self.parameters())
        if non_embedding:
            n_params -= self.transformer.wpe.weight.numel()
        return n_params

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None, caches=None, start=0):
        device = idx.device
        b, t = idx.size()
        pos = torch.arange(start, start + t, dtype=torch.long, device=device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for i, block in enumerate(self.transformer.h):
            x = block(x, None if caches is None else caches[i])
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return (logits, loss)

    def configure_optimizers(self, weight_decay, learning_rate, betas, device_type):
        param_dict = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
        decay_params = [p for n, p in param_dict.items() if p.dim() >= 2]
        nodecay_params = [p for n, p in param_dict.items() if p.dim() < 2]
        optim_groups = [
            {"params": decay_params, "weight_decay": weight_decay},
            {"params": nodecay_params, "weight_decay": 0.0},
        ]
        fused_available = "fused" in inspect.signature(torch.optim.AdamW).parameters
        use_fused = fused_available and device_type == "cuda"
        extra_args = dict(fused=True) if use_fused else dict()
        print(f"num decayed: {len(decay_params)}, with {sum(p.numel() for p in decay_params):,} parameters", use_fused)
        return torch.optim.AdamW(optim_groups, lr=learning_rate, betas=betas, **extra_args)

    @torch.no_grad()
    def generate(self, idx, n, temperature=1.0, top_k=None, top_p=None):
        for _ in range(n):
            idx_cond = idx if idx.size(1) <= self.config.block_size else idx[:, -self.config.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            if top_p is not None:
                sl, si = torch.sort(logits, descending=True)
                cp = torch.cumsum(F.softmax(sl, dim=-1), dim=-1)
                rm = cp > top_p
                rm[..., 1:] = rm[..., :-1].clone()
                rm[..., 0] = 0
                rm = rm.scatter(1, si, rm)
                logits = logits.masked_fill(rm, -float("inf"))
            probs = F.softmax(logits, dim=-1)
            assert torch.multinomial(probs, num_samples=1).shape == (idx.size(0), 1)
            idx_next = probs.argmax(dim=-1, keepdim=True)
            idx = torch.cat((idx, idx_next), dim=1)
        return idx


model = GPT(GPTConfig())
with torch.no_grad():
    for i, p in enumerate(model.parameters()):
        p.copy_(
            ((torch.arange(p.numel()) * 7919 % 101).float() / 101 - 0.5).view_as(p) * 0.5
            + (1 if p.dim() == 1 and i % 2 == 0 else 0)
        )
opt = model.configure_optimizers(0.1, 0.01, (0.9, 0.95), "cpu")
data = torch.arange(60) ** 2 % 11


def get_batch(i):
    ix = [i, i + 5, i + 9]
    x = torch.stack([data[j : j + 8] for j in ix])
    y = torch.stack([data[j + 1 : j + 9] for j in ix])
    return (x, y)


def get_lr(it):
    if it < 2:
        return 0.01 * (it + 1) / 3
    coeff = 0.5 * (1.0 + math.cos(math.pi * (it - 2) / 6))
    return 0.001 + coeff * 0.009


scaler = torch.cuda.amp.GradScaler(enabled=False)
for it in range(6):
    for g in opt.param_groups:
        g["lr"] = get_lr(it)
    x, y = get_batch(it)
    logits, loss = model(x, y)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    n = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
    print(f"iter {it}: loss {loss.item():.4f}, {n.item():.4f}")
model.eval()
print(model.generate(torch.zeros((2, 3), dtype=torch.long), 8, top_k=4).tolist())
print(model.generate(torch.tensor([[1, 2, 3]]), 4, temperature=0.7, top_p=0.9)[0].tolist())
caches = [{} for _ in range(2)]
idx = torch.tensor([[1, 2, 3]])
lg, _ = model(idx, caches=caches)
full, _ = model(idx)
print(torch.allclose(lg, full, atol=1e-05))
nxt = lg.argmax(-1)
lg2, _ = model(nxt, caches=caches, start=3)
full2, _ = model(torch.cat([idx, nxt], 1))
print(
    (lg2 - full2).abs().max() < 1e-05,
    model.lm_head.weight is model.transformer.wte.weight,
    len(list(model.parameters())),
)

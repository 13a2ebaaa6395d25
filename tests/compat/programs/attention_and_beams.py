"""Attention with masks of all kinds, rotary positions, and beam search."""

import torch
import torch.nn.functional as F
from torch import nn

TOLERANCE = 5e-4

mha = nn.MultiheadAttention(8, 2, batch_first=True)
for i, p in enumerate(mha.parameters()):
    p.data = torch.sin(torch.arange(p.numel()) + i).view(p.shape) * 0.5
x = torch.cos(torch.arange(48.0)).view(2, 3, 8)
o, w = mha(x, x, x)
print(o.sum(), w.shape, w[0])
o, w = mha(x, x, x, need_weights=False)
print(w, o.mean())
kpm = torch.tensor([[False, False, True], [False, False, False]])
o, w = mha(x, x, x, key_padding_mask=kpm)
print(o[0], w[0])
am = torch.triu(torch.full((3, 3), float("-inf")), diagonal=1)
o, w = mha(x, x, x, attn_mask=am, average_attn_weights=False)
print(w.shape, w[0, 1])
o, _ = mha(x, x, x, attn_mask=torch.triu(torch.ones(3, 3), 1).bool(), is_causal=True, need_weights=False)
print(o.std())
q, k, v = (torch.sin(torch.arange(24.0) * s).view(1, 2, 3, 4) for s in (1.0, 2.0, 3.0))
print(
    F.scaled_dot_product_attention(q, k, v),
    F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor([[True, False, True]] * 3)),
    F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
)
enc = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
    2,
    norm=nn.LayerNorm(8),
)
dec = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), num_layers=1)
for m in (enc, dec):
    for i, p in enumerate(m.parameters()):
        p.data = torch.cos(torch.arange(p.numel()) * 1.1 + i).view(p.shape) * 0.4
mem = enc(x, src_key_padding_mask=kpm)
print(mem.sum())
out = dec(x[:, :2], mem, tgt_mask=nn.Transformer.generate_square_subsequent_mask(2), memory_key_padding_mask=kpm)
print(out)
out.square().mean().backward()
print(enc.layers[0].self_attn.in_proj_weight.grad.norm(), dec.layers[0].linear1.weight.grad.norm())


def beam(step, start, k, n, eos=4):
    seqs = [([start], 0.0)]
    for _ in range(n):
        cand = []
        for s, sc in seqs:
            if s[-1] == eos:
                cand.append((s, sc))
                continue
            lp = F.log_softmax(step(s), dim=-1)
            top, ix = lp.topk(k)
            for p, i in zip(top, ix):
                cand.append((s + [i.item()], sc + p.item()))
        seqs = sorted(cand, key=lambda t: t[1], reverse=True)[:k]
    return seqs


W = torch.sin(torch.arange(25.0)).view(5, 5)
for s, sc in beam(lambda s: W[s[-1]] + 0.1 * len(s), 0, 3, 4):
    print(s, round(sc, 4))
scores = torch.zeros(3)
beams = torch.zeros(3, 1, dtype=torch.long)
scores[1:] = -1000000000.0
for t in range(4):
    lp = F.log_softmax(W[beams[:, -1]], -1)
    total = scores[:, None] + lp
    scores, flat = total.view(-1).topk(3)
    prev = torch.div(flat, 5, rounding_mode="floor")
    nxt = flat % 5
    beams = torch.cat([beams[prev], nxt.unsqueeze(1)], dim=1)
print(beams, scores)


def rotary(x, base=10000):
    d = x.shape[-1]
    inv = 1.0 / base ** (torch.arange(0, d, 2).float() / d)
    t = torch.arange(x.shape[-2]).type_as(inv)
    fr = torch.einsum("i,j->ij", t, inv)
    emb = torch.cat((fr, fr), dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * emb.cos()[None, None] + torch.cat((-x2, x1), dim=-1) * emb.sin()[None, None]


print(rotary(q))
fc = torch.polar(torch.ones(3, 2), torch.outer(torch.arange(3.0), torch.tensor([1.0, 0.5])))
xq = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
print(torch.view_as_real(xq * fc).flatten(3))
slopes = torch.tensor([2 ** (-8 * (i + 1) / 2) for i in range(2)])
bias = slopes.view(1, 2, 1, 1) * (torch.arange(3)[None, :] - torch.arange(3)[:, None]).view(1, 1, 3, 3)
print(F.scaled_dot_product_attention(q, k, v, attn_mask=bias).sum(), bias.shape)
print(
    k.repeat_interleave(2, dim=1).shape,
    k[:, :, None].expand(1, 2, 2, 3, 4).reshape(1, 4, 3, 4).shape,
    F.pad(am, (1, 0), value=-1.0),
)

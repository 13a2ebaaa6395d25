"""Sequence to sequence with attention: an encoder and a decoder of GRUs that learn to reverse sequences."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

WORDS, SIZE, SOS = 10, 12, 0


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE)
        self.gru = nn.GRU(SIZE, SIZE, batch_first=True)

    def forward(self, input):
        return self.gru(self.embedding(input))


class BahdanauAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.Wa = nn.Linear(SIZE, SIZE)
        self.Ua = nn.Linear(SIZE, SIZE)
        self.Va = nn.Linear(SIZE, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZE)
        self.attention = BahdanauAttention()
        self.gru = nn.GRU(2 * SIZE, SIZE, batch_first=True)
        self.out = nn.Linear(SIZE, WORDS)

    def forward(self, encoder_outputs, encoder_hidden, target=None, length=5):
        batch_size = encoder_outputs.size(0)
        word = torch.empty(batch_size, 1, dtype=torch.long).fill_(SOS)
        hidden, outputs, attentions = encoder_hidden, [], []
        for i in range(length):
            embedded = self.embedding(word)
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
            output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
            output = self.out(output)
            outputs.append(output)
            attentions.append(weights)
            if target is not None:
                word = target[:, i].unsqueeze(1)
            else:
                _, top = output.topk(1)
                word = top.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outputs, dim=1), dim=-1), hidden, torch.cat(attentions, dim=1)


def main():
    rng = np.random.default_rng(5)
    encoder, decoder = EncoderRNN(), AttnDecoderRNN()
    for module in (encoder, decoder):
        for p in module.parameters():
            nn.init.zeros_(p)
            p.data.add_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape)).astype(np.float32)))
    source = torch.from_numpy(rng.integers(1, WORDS, (6, 5)))
    target = source.flip(1)
    optimizers = [optim.Adam(m.parameters(), lr=0.01) for m in (encoder, decoder)]
    criterion = nn.NLLLoss()
    losses = []
    for _ in range(6):
        for optimizer in optimizers:
            optimizer.zero_grad()
        outputs, hidden = encoder(source)
        guesses, _, _ = decoder(outputs, hidden, target)
        loss = criterion(guesses.view(-1, guesses.size(-1)), target.reshape(-1))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        guesses, _, attention = decoder(*encoder(source))
    return [*losses, guesses.exp().max().item(), attention[0, 0].sum().item()]

"""Word embeddings: a model of the next word of two, and one of a word by those around it."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

SENTENCE = "a loop of small programs runs over the tape and the tape runs over a loop of small numbers".split()


class NGramLanguageModeler(nn.Module):
    def __init__(self, vocab_size, embedding_dim, context_size):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(context_size * embedding_dim, 16)
        self.linear2 = nn.Linear(16, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).view((1, -1))
        return F.log_softmax(self.linear2(F.relu(self.linear1(embeds))), dim=1)


class CBOW(nn.Module):
    def __init__(self, vocab_size, embedding_dim):
        super().__init__()
        self.embeddings = nn.EmbeddingBag(vocab_size, embedding_dim, mode="sum")
        self.linear = nn.Linear(embedding_dim, vocab_size)

    def forward(self, inputs):
        return self.linear(self.embeddings(inputs.unsqueeze(0)))


def fill(model, rng):
    for _, p in sorted(model.named_parameters()):
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, tuple(p.shape)).astype(np.float32)))


def main():
    rng = np.random.default_rng(10)
    vocabulary = {word: i for i, word in enumerate(sorted(set(SENTENCE)))}
    model = NGramLanguageModeler(len(vocabulary), 6, 2)
    fill(model, rng)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        total_loss = 0
        for i in range(2, len(SENTENCE)):
            context = torch.tensor([vocabulary[w] for w in SENTENCE[i - 2 : i]], dtype=torch.long)
            model.zero_grad()
            loss = nn.NLLLoss()(model(context), torch.tensor([vocabulary[SENTENCE[i]]], dtype=torch.long))
            loss.backward()
            optimizer.step()
            total_loss += loss.item()
        losses.append(total_loss)
    cbow = CBOW(len(vocabulary), 6)
    fill(cbow, rng)
    optimizer = optim.Adagrad(cbow.parameters(), lr=0.1)
    for i in range(2, 8):
        around = SENTENCE[i - 2 : i] + SENTENCE[i + 1 : i + 3]
        optimizer.zero_grad()
        logits = cbow(torch.tensor([vocabulary[w] for w in around]))
        loss = F.cross_entropy(logits, torch.tensor([vocabulary[SENTENCE[i]]]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses

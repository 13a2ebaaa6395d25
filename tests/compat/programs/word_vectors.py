"""An n-gram model, skip-grams with negative samples, and bags of embeddings."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

TOLERANCE = 5e-4

CONTEXT_SIZE = 2
EMBEDDING_DIM = 10
test_sentence = """When forty winters shall besiege thy brow,
And dig deep trenches in thy beauty's field,
Thy youth's proud livery so gazed on now,
Will be a totter'd weed of small worth held""".split()
ngrams = [
    ([test_sentence[i - j - 1] for j in range(CONTEXT_SIZE)], test_sentence[i])
    for i in range(CONTEXT_SIZE, len(test_sentence))
]
vocab = sorted(set(test_sentence))
word_to_ix = {word: i for i, word in enumerate(vocab)}


class NGramLanguageModeler(nn.Module):
    def __init__(self, vocab_size, embedding_dim, context_size):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.linear1 = nn.Linear(context_size * embedding_dim, 32)
        self.linear2 = nn.Linear(32, vocab_size)

    def forward(self, inputs):
        embeds = self.embeddings(inputs).view((1, -1))
        out = F.relu(self.linear1(embeds))
        out = self.linear2(out)
        return F.log_softmax(out, dim=1)


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.u = nn.Embedding(vocab, dim, sparse=True)
        self.v = nn.Embedding(vocab, dim, sparse=False)

    def forward(self, c, o, neg):
        vc, uo = (self.v(c), self.u(o))
        pos = F.logsigmoid(torch.sum(vc * uo, dim=1).squeeze())
        negs = torch.bmm(self.u(neg), vc.unsqueeze(2)).squeeze(2)
        negs = F.logsigmoid(-1 * negs).sum(1)
        return -(pos + negs).mean()


losses = []
loss_function = nn.NLLLoss()
model = NGramLanguageModeler(len(vocab), EMBEDDING_DIM, CONTEXT_SIZE)
for i, p in enumerate(model.parameters()):
    p.data.copy_(torch.sin(torch.arange(1, p.nelement() + 1).float() * (0.37 + i)).reshape(p.data.shape) * 0.3)
optimizer = optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    total_loss = 0
    for context, target in ngrams:
        context_idxs = torch.tensor([word_to_ix[w] for w in context], dtype=torch.long)
        model.zero_grad()
        log_probs = model(context_idxs)
        loss = loss_function(log_probs, torch.tensor([word_to_ix[target]], dtype=torch.long))
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    losses.append(total_loss)
print(losses)
print(model.embeddings.weight[word_to_ix["thy"]])
m = SkipGram(len(vocab), 4)
for p in m.parameters():
    nn.init.uniform_(p, -0.1, 0.1)
    p.data = torch.linspace(-1, 1, p.numel()).reshape(p.shape).sin()
opt = optim.Adagrad(m.parameters(), lr=0.1) if False else optim.SGD(m.parameters(), lr=0.5)
rng = np.random.RandomState(0)
for _ in range(3):
    c, o, neg = (torch.from_numpy(rng.randint(0, len(vocab), s)) for s in ((8,), (8,), (8, 3)))
    opt.zero_grad()
    l = m(c, o, neg)
    l.backward()
    opt.step()
    print(l.item())
emb = m.v.weight.data
norm = (emb**2).sum(1) ** 0.5
sim = emb @ emb[3] / (norm * norm[3])
print(sim.argsort(descending=True)[:4], F.cosine_similarity(emb[3].unsqueeze(0), emb)[:3])
w = torch.FloatTensor([[1, 2.3, 3], [4, 5.1, 6.3]])
e = nn.Embedding.from_pretrained(w)
print(e(torch.LongTensor([1])), e.weight.requires_grad)
bag = nn.EmbeddingBag(5, 3, mode="mean", padding_idx=0)
bag.weight = nn.Parameter(torch.arange(15.0).view(5, 3))
print(bag(torch.tensor([1, 2, 4, 3, 0]), torch.tensor([0, 3])))
print(
    nn.EmbeddingBag(5, 3, mode="sum", _weight=torch.ones(5, 3))(
        torch.tensor([[0, 1], [2, 2]]), per_sample_weights=torch.tensor([[1.0, 2.0], [0.5, 0.5]])
    )
)

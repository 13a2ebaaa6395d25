"""A conditional random field on a bidirectional LSTM: the likelihood of tags, and the best tags by Viterbi."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

START, STOP = "<start>", "<stop>"
TAGS = {"B": 0, "I": 1, "O": 2, START: 3, STOP: 4}


def argmax(vec):
    _, idx = torch.max(vec, 1)
    return idx.item()


def log_sum_exp(vec):
    max_score = vec[0, argmax(vec)]
    max_score_broadcast = max_score.view(1, -1).expand(1, vec.size()[1])
    return max_score + torch.log(torch.sum(torch.exp(vec - max_score_broadcast)))


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.word_embeds = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim // 2, num_layers=1, bidirectional=True)
        self.hidden2tag = nn.Linear(hidden_dim, len(TAGS))
        self.transitions = nn.Parameter(torch.zeros(len(TAGS), len(TAGS)))

    def _features(self, sentence):
        hidden = (torch.zeros(2, 1, self.hidden_dim // 2), torch.zeros(2, 1, self.hidden_dim // 2))
        out, _ = self.lstm(self.word_embeds(sentence).view(len(sentence), 1, -1), hidden)
        return self.hidden2tag(out.view(len(sentence), self.hidden_dim))

    def _forward_alg(self, feats):
        init_alphas = torch.full((1, len(TAGS)), -10000.0)
        init_alphas[0, TAGS[START]] = 0.0
        forward_var = init_alphas
        for feat in feats:
            alphas_t = []
            for next_tag in range(len(TAGS)):
                emit_score = feat[next_tag].view(1, -1).expand(1, len(TAGS))
                next_tag_var = forward_var + self.transitions[next_tag].view(1, -1) + emit_score
                alphas_t.append(log_sum_exp(next_tag_var).view(1))
            forward_var = torch.cat(alphas_t).view(1, -1)
        return log_sum_exp(forward_var + self.transitions[TAGS[STOP]])

    def _score_sentence(self, feats, tags):
        score = torch.zeros(1)
        tags = torch.cat([torch.tensor([TAGS[START]], dtype=torch.long), tags])
        for i, feat in enumerate(feats):
            score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
        return score + self.transitions[TAGS[STOP], tags[-1]]

    def neg_log_likelihood(self, sentence, tags):
        feats = self._features(sentence)
        return self._forward_alg(feats) - self._score_sentence(feats, tags)

    def forward(self, sentence):
        feats = self._features(sentence)
        best = torch.full((1, len(TAGS)), -10000.0)
        best[0, TAGS[START]] = 0
        backpointers = []
        for feat in feats:
            scores, places = torch.max(best + self.transitions, dim=1)
            backpointers.append(places.tolist())
            best = (scores + feat).view(1, -1)
        last = best + self.transitions[TAGS[STOP]]
        path = [argmax(last)]
        for places in reversed(backpointers):
            path.append(places[path[-1]])
        return last.max().item(), path


def main():
    rng = np.random.default_rng(12)
    model = BiLSTM_CRF(9, 5, 4)
    with torch.no_grad():
        for _, p in sorted(model.named_parameters()):
            p.copy_(torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape)).astype(np.float32)))
    model.transitions.data[TAGS[START], :] = -10000
    model.transitions.data[:, TAGS[STOP]] = -10000
    optimizer = optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-4)
    data = [
        (torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 2, 2])),
        (torch.tensor([4, 5, 6]), torch.tensor([2, 0, 1])),
    ]
    losses = []
    for _ in range(3):
        for sentence, tags in data:
            model.zero_grad()
            loss = model.neg_log_likelihood(sentence, tags)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        score, path = model(data[0][0])
    return [*losses, score, *path]

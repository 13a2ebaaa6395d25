"""Parts of speech by an LSTM over word embeddings."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

training_data = [
    (["the", "dog", "ate", "the", "apple"], ["DET", "NN", "V", "DET", "NN"]),
    (["everybody", "read", "that", "book"], ["NN", "V", "DET", "NN"]),
]
tag_to_ix = {"DET": 0, "NN": 1, "V": 2}


def prepare_sequence(seq, to_ix):
    return torch.tensor([to_ix[w] for w in seq], dtype=torch.long)


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim)
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, _ = self.lstm(embeds.view(len(sentence), 1, -1))
        return F.log_softmax(self.hidden2tag(lstm_out.view(len(sentence), -1)), dim=1)


def main():
    word_to_ix = {}
    for sent, _ in training_data:
        for word in sent:
            if word not in word_to_ix:
                word_to_ix[word] = len(word_to_ix)
    model = LSTMTagger(6, 6, len(word_to_ix), len(tag_to_ix))
    rng = np.random.default_rng(11)
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape)).astype(np.float32)))
    loss_function = nn.NLLLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.2)
    losses = []
    for _ in range(6):
        for sentence, tags in training_data:
            model.zero_grad()
            loss = loss_function(model(prepare_sequence(sentence, word_to_ix)), prepare_sequence(tags, tag_to_ix))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        scores = model(prepare_sequence(training_data[0][0], word_to_ix))
    return [*losses, *scores.max(dim=1)[0].tolist()]

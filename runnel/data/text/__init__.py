"""Texts as numbers: words, vocabularies, sequences of one length."""

from runnel.core.namespaces import namespace

NAMES = {
    "BytePairEncoding": "runnel.data.text.byte_pairs:BytePairEncoding",
    "Vocab": "runnel.data.text.vocabulary:Vocab",
    "ngrams": "runnel.data.text.vocabulary:ngrams",
    "pad": "runnel.data.text.vocabulary:pad",
    "pad_collate": "runnel.data.text.vocabulary:pad_collate",
    "tokenize": "runnel.data.text.vocabulary:tokenize",
    "truncate": "runnel.data.text.vocabulary:truncate",
}

__all__, __getattr__, __dir__ = namespace(__name__, NAMES)

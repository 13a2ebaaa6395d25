"""Texts as numbers: words, vocabularies, sequences of one length."""

# Written by scripts/surface.py from the declarations where things are defined: see runnel.core.surface.

from runnel.core import public
from runnel.data.text.byte_pairs import BytePairEncoding
from runnel.data.text.lengths import pad, pad_collate, truncate
from runnel.data.text.splitting import ngrams, tokenize
from runnel.data.text.vocabulary import Vocab

__all__ = ["BytePairEncoding", "Vocab", "ngrams", "pad", "pad_collate", "tokenize", "truncate"]

public.offer(globals(), __all__)
del public

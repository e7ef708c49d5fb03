"""Sentences, tokens and batches."""

from transformer_lib.data.batches import (
    Batch,
    limit_lengths,
    make_batch,
    padding_share,
    token_batches,
)
from transformer_lib.data.corpora import ParallelCorpus
from transformer_lib.data.corpora.home_assistant import part_of, read_entries
from transformer_lib.data.corpora.labelled import read_reviews
from transformer_lib.data.corpora.multi30k import load_multi30k
from transformer_lib.data.corpora.parallel import read_lines
from transformer_lib.data.steps import Steps
from transformer_lib.data.tokenizer import Tokenizer

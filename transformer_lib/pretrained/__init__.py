"""Models as they are kept and used: weights, configuration and tokenizer."""

from transformer_lib.pretrained.translator import find

"""Models as they are kept and used: weights, configuration and tokenizer."""

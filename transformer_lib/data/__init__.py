"""Sentences, tokens and batches."""

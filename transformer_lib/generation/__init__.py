"""From a source sentence to the target: searches, sampling, and their cache."""

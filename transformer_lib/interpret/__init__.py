"""Looking into a model while it runs, and reaching in."""

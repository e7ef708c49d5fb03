"""How good a model is: scores with their uncertainty."""

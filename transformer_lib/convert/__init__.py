"""Other people's weights, names and masks, in and out of our model."""

"""What single choices are worth, the paper's and those since 2017, and the records."""

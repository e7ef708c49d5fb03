"""What the choices of the paper are worth: every one undone in turn, and the record."""

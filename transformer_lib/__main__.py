"""`python -m transformer_lib translate | train | score`: one word, then its options."""

from transformer_lib.cli import main

main()

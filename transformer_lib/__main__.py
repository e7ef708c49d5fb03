"""`python -m transformer_lib translate | train | score | export`: the commands."""

from transformer_lib.cli import main

main()

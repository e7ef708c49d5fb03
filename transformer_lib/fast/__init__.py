"""Everything that exists for speed, and nothing else: without it all works, slower."""

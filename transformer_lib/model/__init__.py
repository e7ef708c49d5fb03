"""What the book builds, and nothing else: torch is all it imports."""

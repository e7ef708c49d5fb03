"""What the pages of the book need and the settings cannot give."""

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}

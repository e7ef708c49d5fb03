"""What the pages show: drawings, charts, graders, recorded results, the pencil model.

Chapters import from its packages; the library knows nothing of it.
"""

"""What a reader writes in the page: the parts, their graders, Python's machine.

`parts` says what the nine parts are; `source` makes their text of the library's own;
`graders` tells what is wrong with an answer. All of it runs on PyTorch and on the torch
of the page.
"""

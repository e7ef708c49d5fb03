"""`python -m transformer_book grade FOLDER`: grade a folder of students' notebooks."""

import os
import sys

if sys.path[0] == os.getcwd():  # a student's random.py may lie there
    del sys.path[0]

from transformer_book.grade import main  # noqa: E402

if __name__ == "__main__":
    main()

"""What the chapter on other people's code shows: their names, masks and habits."""

from transformer_book.other_code.crosswalk import (
    find_parts,
    find_rows,
    look_up,
    own_things,
    read_rows,
    to_markdown,
    weight_names,
)
from transformer_book.other_code.dialects import as_convolution, convert_mask

"""Other people's weights, names and masks, in and out of our model."""

from transformer_lib.convert.convolution import as_convolution
from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.convert.export import export
from transformer_lib.convert.lookup import find_parts, look_up, own_things
from transformer_lib.convert.masks import convert_mask
from transformer_lib.convert.models import from_fsmt, from_marian, from_torch
from transformer_lib.convert.positions import fix_positions, sinusoid_halves
from transformer_lib.convert.variants import VARIANTS, apply_variant

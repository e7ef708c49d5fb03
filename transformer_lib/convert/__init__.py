"""Other people's weights in our model, and our models in other people's programs."""

from transformer_lib.convert.export import export
from transformer_lib.convert.language_models import from_gpt2, from_llama
from transformer_lib.convert.models import from_fsmt, from_marian, from_torch
from transformer_lib.convert.opus_mt import load_opus
from transformer_lib.convert.positions import fix_positions, sinusoid_halves
from transformer_lib.convert.weights import WEIGHT_NAMES, convert_weights

"""What the book builds, and nothing else: torch is all it imports."""

from transformer_lib.model.attention import fused_attention
from transformer_lib.model.language_model import DecoderOnlyLayer, LanguageModel
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.modern import (
    GatedFeedForward,
    GroupedQueryAttention,
    ModernConfig,
    NoPositions,
    RMSNorm,
    build_model,
    remove_positions,
    replace_attention,
    replace_feed_forward,
    replace_norms,
    rotary_speeds,
    rotate,
)
from transformer_lib.model.transformer import (
    build_embeddings,
    build_encoder,
    count_parameters,
    initialize,
)

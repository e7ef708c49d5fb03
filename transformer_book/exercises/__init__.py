"""Graders for the exercises: each `check_…(answer)` says what to do next.

There is one module for each chapter. A grader returns a `Feedback`, which a notebook
shows as a sentence: the exercise is not attempted yet, what the mistake is, or why the
answer is right. `grading` says how to write one.
"""

from .attention import check_softmax, check_streaming, check_temperature, check_weights
from .batching import check_merge, check_pad_left, check_plan, check_resume, check_split
from .caching import (
    check_cache_size,
    check_draft,
    check_new_mask,
    check_reorder,
    check_window,
)
from .classifier import (
    check_attention_pool,
    check_energy_loss,
    check_interval,
    check_masked_max,
)
from .decoder import check_alignment, check_incremental, check_shift, check_two_sources
from .dialects import check_join, check_key, check_table, check_unpack
from .embeddings import (
    check_period,
    check_position_shift,
    check_positions,
    check_segments,
)
from .encoder import (
    check_encoder_layer,
    check_hidden_states,
    check_parallel_layer,
    check_sorting_network,
)
from .full_model import (
    check_design,
    check_forward,
    check_language_model,
    check_parameter_count,
    check_prediction,
)
from .generation import check_beam_step, check_cut, check_min_p
from .language_model import (
    check_continuation,
    check_hide_prompt,
    check_prefix_model,
    check_speculation,
)
from .masks import (
    check_diagnosis,
    check_packed_mask,
    check_target_mask,
    check_window_mask,
    mystery_attention,
)
from .modern import (
    check_halves,
    check_kv_bytes,
    check_mixture,
    check_offset_norm,
    check_partial,
    check_pooled,
)
from .multi_head import (
    check_grouped_query,
    check_multi_head,
    check_next_word,
    check_parameters,
    check_split_heads,
)
from .quality import check_bleu, check_clipped, check_paired, check_sample_size
from .reading import (
    check_aligner,
    check_error_rate,
    check_previous_weight,
    check_pruning,
)
from .residual import (
    check_connection,
    check_copied_gain,
    check_identity_start,
    check_rms_norm,
)
from .training import (
    check_accumulation,
    check_schedule,
    check_token_loss,
    check_training_plan,
)

"""Looking into a model while it runs, and reaching in."""

from transformer_lib.interpret.interventions import (
    edit_weights,
    equal_weights,
    named_attentions,
    record_value_norms,
    shuffled_weights,
    without_head,
)
from transformer_lib.interpret.recording import source_attention

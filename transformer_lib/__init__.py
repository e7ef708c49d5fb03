"""The encoder-decoder Transformer, in packages by role.

model         what the book builds: attention, layers, the whole Transformer
data          sentences, tokens, batches, corpora
training      loss, schedule, step, loop
generation    greedy search, beam search, sampling, and their cache
interpret     recording attention, changing it
fast          what exists only for speed, for anyone who asks for it
pretrained    the shipped models: `load("multi30k-de-en").translate([...])`
evaluation    BLEU, chrF and accuracy with intervals, word alignment
runs          recipes, and runs in folders that survive being interrupted
convert       other people's weights in, ours out
plots         still pictures
cli           python -m transformer_lib translate | train | score | export

Beside them: `probe` compares two models, `weights` loads and averages, `files` writes
whole or not at all, `precision` and `interrupts` do what their names say.

The names below are the public interface.
"""

from transformer_lib import interrupts  # first, before PyTorch
from transformer_lib.data.batches import pad_batch
from transformer_lib.data.examples import SENTENCE_PAIRS, split_words
from transformer_lib.data.tokenizer import Tokenizer, Vocabulary
from transformer_lib.generation.beam_search import beam_search
from transformer_lib.generation.constraints import GenerationConfig, Hypothesis
from transformer_lib.generation.greedy import greedy_decode
from transformer_lib.generation.incremental import (
    IncrementalDecoder,
    RecomputingDecoder,
)
from transformer_lib.generation.sampling import SamplingConfig, sample
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from transformer_lib.model.classifier import EncoderClassifier, Pool
from transformer_lib.model.config import PRESETS, TransformerConfig
from transformer_lib.model.embeddings import (
    Embeddings,
    PositionalEncoding,
    sinusoid_table,
)
from transformer_lib.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    SublayerConnection,
)
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.modern import ModernConfig, build_model
from transformer_lib.model.transformer import (
    Decoder,
    Encoder,
    Transformer,
    count_parameters,
)
from transformer_lib.pretrained.classifier import Classifier, load_classifier
from transformer_lib.pretrained.translator import Translator, load
from transformer_lib.training.loss import label_smoothed_loss
from transformer_lib.training.schedule import learning_rate

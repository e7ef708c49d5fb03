"""The encoder-decoder Transformer in small modules, read in this order.

config      sizes and choices: TransformerConfig
presets     the paper's two models and those of the source documents
data        example sentences, words to ids, padded batches
masks       padding_mask, causal_mask, and a translator between conventions
attention   scaled_dot_product_attention, MultiHeadAttention
residual    layer norm and the residual connection it belongs to
layers      FeedForward, EncoderLayer, DecoderLayer
embeddings  tokens and positions to vectors
stacks      Encoder, Decoder, and how a configuration becomes one
model       Transformer, EncoderClassifier
recording   record_attention, record_hidden_states
plotting    static figures, one theme
charts      interactive figures
checks      graders for the exercises
"""

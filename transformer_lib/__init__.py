"""The encoder-decoder Transformer in small modules, read in this order.

config      sizes and choices: TransformerConfig
presets     the paper's two models and those of the source documents
data        example sentences, words to ids, padded batches
masks       padding_mask, causal_mask, and a translator between conventions
linear      PyTorch's linear layer, faster for a decoding step
attention   scaled_dot_product_attention, MultiHeadAttention
attention_cache, cache   keys and values that a decoder remembers
residual    layer norm and the residual connection it belongs to
layers      FeedForward, EncoderLayer, DecoderLayer
embeddings  tokens and positions to vectors
stacks      Encoder, Decoder, and how a configuration becomes one
pooling     one vector for a whole text
model       Transformer, EncoderClassifier
recording   record_attention, record_hidden_states

corpora     sentences to learn from: generated, shipped, or fetched
tokenizer   words or subwords to ids and back
batches     sentences of like length side by side
training    loss, learning rate, one step, the loop
steps       what each step of a long run learns from
recipes     everything that decides a run, in one file
checkpoints the state of a run on disk, whole or not at all
runs        a run in a folder, on any device (lightning_module), resumed
packing     weights in the order that a decoding step reads fastest
targets     what a written target must keep to, and what is found
classifier  an encoder that judges (accuracy, classification, classifier_runs)
decoding    greedy search, one token at a time
beam_search several targets side by side, the best kept
sampling    tokens drawn by lot
evaluation  BLEU and chrF, with signatures and intervals
pretrained  the shipped models; the commands are train, translate and score
interop     other people's weights in our model; opus fetches those of OPUS-MT

plotting    static figures, one theme
charts      interactive figures
checks      graders for the exercises
"""

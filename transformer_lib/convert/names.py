"""What the same thing is called in nine dialects: the rows of the cross-walk.

A line without indentation opens a topic; two spaces open a row with the term it is
about; the lines below it say `dialect: names`, separated by semicolons. A name is
written so that it can be looked up: `Thing.attribute`, or `Thing(parameter=default)`
with parameters in the order in which Thing takes them. What follows " | " is a fact
about the name, which a test shows by running it. `crosswalk.py` reads the rows.
"""

NAMES = r"""
Sizes and choices
  width of every vector
    paper: $d_{model}$
    transformer_lib: TransformerConfig(d_model=512)
    torch.nn: nn.Transformer(d_model=512); nn.MultiheadAttention(embed_dim)
    fairseq: args.encoder_embed_dim; MultiheadAttention(embed_dim)
    Hugging Face: MarianConfig(d_model=1024); BertConfig(hidden_size=768)
    lecture: MultiHeadAttention(d_model)
    post: EncoderLayer(embed_dim); MultiHeadAttention(hid_dim)
    dummies: $E$
    revisited: EncoderLayer(size); LayerNorm(features)
  number of heads
    paper: $h$
    transformer_lib: TransformerConfig(n_heads=8)
    torch.nn: nn.Transformer(nhead=8); nn.MultiheadAttention(num_heads)
    fairseq: args.encoder_attention_heads; MultiheadAttention(num_heads)
    Hugging Face: MarianConfig(encoder_attention_heads=16)
    lecture: MultiHeadAttention(num_heads)
    post: MultiHeadAttention(num_heads)
  width of a head
    paper: $d_k = d_v$
    transformer_lib: MultiHeadAttention.d_head
    torch.nn: nn.MultiheadAttention.head_dim
    fairseq: MultiheadAttention.head_dim
    Hugging Face: MarianMTModel.model.encoder.layers.0.self_attn.head_dim
    lecture: MultiHeadAttention.d_k
    post: MultiHeadAttention.head_dim
    dummies: $d_k$
  hidden width of the feed-forward network
    paper: $d_{ff}$
    transformer_lib: TransformerConfig(d_ff=2048)
    torch.nn: nn.Transformer(dim_feedforward=2048)
    fairseq: args.encoder_ffn_embed_dim
    Hugging Face: MarianConfig(encoder_ffn_dim=4096)
    lecture: EncoderLayer(conv_hidden_dim)
    post: EncoderLayer(ff_hid_dim)
  number of layers
    paper: $N$
    transformer_lib: TransformerConfig(n_encoder_layers=6, n_decoder_layers=6)
    torch.nn: nn.Transformer(num_encoder_layers=6, num_decoder_layers=6)
    fairseq: args.encoder_layers; args.decoder_layers
    Hugging Face: MarianConfig(encoder_layers=12, decoder_layers=12)
    lecture: Encoder(num_layers)
    post: Encoder(num_layers)
    revisited: Encoder(N)
  norm before the sub-layer (pre-norm)
    transformer_lib: TransformerConfig(norm_first=False)
    torch.nn: nn.Transformer(norm_first=False)
    fairseq: args.encoder_normalize_before; TransformerEncoderLayer.normalize_before
  epsilon of the layer norm
    transformer_lib: TransformerConfig(norm_eps=1e-05)
    torch.nn: nn.Transformer(layer_norm_eps=1e-05); nn.LayerNorm(eps=1e-05)
    revisited: LayerNorm(eps=1e-06)
  dropout rate
    paper: $P_{drop}$
    transformer_lib: TransformerConfig(dropout=0.1)
    torch.nn: nn.Transformer(dropout=0.1)
    Hugging Face: MarianConfig(dropout=0.1)
    lecture: MultiHeadAttention(p)
    post: EncoderLayer(dropout)
    revisited: EncoderLayer(dropout)
  activation of the feed-forward network
    paper: $\max(0, x)$
    transformer_lib: TransformerConfig(activation='relu')
    torch.nn: nn.TransformerEncoderLayer(activation)
    Hugging Face: MarianConfig(activation_function='gelu')
  positions there are vectors for
    transformer_lib: TransformerConfig(max_len=512)
    Hugging Face: MarianConfig(max_position_embeddings=1024)
    post: Encoder(max_len)
  embeddings times the root of the width
    paper: $\sqrt{d_{model}}$
    transformer_lib: TransformerConfig(scale_embeddings=True); Embeddings.scale
    fairseq: TransformerEncoder.embed_scale
    Hugging Face: MarianConfig(scale_embedding=False)
  one matrix for embeddings and output
    transformer_lib: TransformerConfig(tie_embeddings='all')
    fairseq: args.share_all_embeddings
    Hugging Face: MarianConfig(tie_word_embeddings=True)
  id of the padding token
    transformer_lib: TransformerConfig(pad_id=0)
    torch.nn: nn.Embedding(padding_idx=None); nn.CrossEntropyLoss(ignore_index=-100)
    fairseq: TransformerEncoder.padding_idx
    Hugging Face: MarianConfig(pad_token_id=58100); BartConfig(pad_token_id=1)
    post: Transformer.src_pad_idx; Transformer.trg_pad_idx
    dummies: training_loss(padding_index)

Inputs and outputs
  source
    paper: inputs
    transformer_lib: Transformer.forward(src)
    torch.nn: nn.Transformer.forward(src) | vectors, not ids
    fairseq: TransformerModel.forward(src_tokens)
    Hugging Face: MarianMTModel.forward(input_ids)
    lecture: Encoder.forward(x)
    post: Transformer.forward(src)
    dummies: encoder_input
    revisited: Encoder.forward(x)
  target the decoder reads
    paper: outputs (shifted right)
    transformer_lib: Transformer.forward(tgt_in)
    torch.nn: nn.Transformer.forward(tgt) | vectors, not ids
    fairseq: TransformerModel.forward(prev_output_tokens)
    Hugging Face: MarianMTModel.forward(decoder_input_ids)
    post: Transformer.forward(trg)
    dummies: training_loss(target_batch)
  target to be predicted
    transformer_lib: tgt_out
    torch.nn: nn.CrossEntropyLoss.forward(target)
    Hugging Face: MarianMTModel.forward(labels)
    dummies: target_batch_out
  result of the encoder
    paper: $\mathbf{z}$
    transformer_lib: Transformer.decode(memory)
    torch.nn: nn.TransformerDecoder.forward(memory)
    fairseq: TransformerDecoder.forward(encoder_out) | length first
    Hugging Face: MarianMTModel.forward(encoder_outputs)
    post: Decoder.forward(enc_src)
    revisited: Decoder.forward(memory)
  order of the axes
    transformer_lib: Encoder.forward | (batch, length, d_model)
    torch.nn: nn.Transformer(batch_first=False) | (length, batch, d_model) by default
    fairseq: TransformerEncoderLayer.forward | (length, batch, embed_dim)
    Hugging Face: MarianMTModel.get_encoder | (batch, length, d_model)
    lecture: MultiHeadAttention.forward | (batch, length, d_model)
  features before the output layer
    transformer_lib: Transformer.decode
    torch.nn: nn.Transformer.forward
    fairseq: TransformerDecoder.forward(features_only=False)
    Hugging Face: MarianMTModel.model
  hidden states of all layers
    transformer_lib: record_hidden_states | after each layer
    fairseq: TransformerEncoder.forward(return_all_hiddens=False)
    Hugging Face: MarianConfig(output_hidden_states=False) | the embeddings too
  attention weights
    paper: $\mathrm{softmax}(QK^\top/\sqrt{d_k})$
    transformer_lib: record_attention | one map for each head
    torch.nn: nn.MultiheadAttention.forward(average_attn_weights=True)
    fairseq: MultiheadAttention.forward
    Hugging Face: MarianConfig.output_attentions | one map for each head
    lecture: MultiHeadAttention.forward | returns (H, A)
  scores before the softmax
    paper: $QK^\top/\sqrt{d_k}$
    transformer_lib: scores
    fairseq: attn_weights
    lecture: scores
    post: energy
  word alignment
    transformer_lib: alignment
    fairseq: TransformerDecoder.forward(alignment_layer=None, alignment_heads=None)
  what the decoder keeps of earlier steps
    fairseq: incremental_state
    Hugging Face: MarianMTModel.forward(past_key_values=None, use_cache=None)

Calls
  attention
    paper: $\mathrm{Attention}(Q, K, V)$
    transformer_lib: scaled_dot_product_attention(query, key, value, mask)
    torch.nn: F.scaled_dot_product_attention(query, key, value, attn_mask)
    dummies: attention(Q, K, V, M)
  multi-head attention
    paper: $\mathrm{MultiHead}(Q, K, V)$
    transformer_lib: MultiHeadAttention.forward(query, key, value, mask)
    torch.nn: nn.MultiheadAttention.forward(query, key, value, key_padding_mask)
    fairseq: MultiheadAttention.forward(query, key, value, key_padding_mask, attn_mask)
    Hugging Face: MarianAttention.forward(hidden_states, key_value_states)
    lecture: MultiHeadAttention.forward(X_q, X_k, X_v)
    post: MultiHeadAttention.forward(value, key, query, mask) | values first
    revisited: self_attn(x, x, x, mask)
  encoder layer
    transformer_lib: EncoderLayer.forward(x, src_mask)
    torch.nn: nn.TransformerEncoderLayer.forward(src, src_mask, src_key_padding_mask)
    fairseq: TransformerEncoderLayer.forward(x, encoder_padding_mask)
    Hugging Face: MarianEncoderLayer.forward(hidden_states, attention_mask)
    lecture: EncoderLayer.forward(x)
    post: EncoderLayer.forward(src, src_mask)
    revisited: EncoderLayer.forward(x, mask)
  decoder layer
    transformer_lib: DecoderLayer.forward(x, memory, src_mask, tgt_mask)
    torch.nn: nn.TransformerDecoderLayer.forward(tgt, memory, tgt_mask, memory_mask)
    fairseq: TransformerDecoderLayer.forward(x, encoder_out, encoder_padding_mask)
    Hugging Face: MarianDecoderLayer.forward(hidden_states, attention_mask)
    post: DecoderLayer.forward(trg, trg_mask, enc_src, src_mask)
    revisited: DecoderLayer.forward(x, memory, src_mask, tgt_mask)
  whole model
    transformer_lib: Transformer.forward(src, tgt_in)
    torch.nn: nn.Transformer.forward(src, tgt, src_mask, tgt_mask, memory_mask)
    fairseq: TransformerModel.forward(src_tokens, src_lengths, prev_output_tokens)
    Hugging Face: MarianMTModel.forward(input_ids, attention_mask, decoder_input_ids)
    post: Transformer.forward(src, trg)

Masks
  mask given to attention
    paper: illegal connections set to $-\infty$
    transformer_lib: MultiHeadAttention.forward(mask) | True = attend
    torch.nn: nn.MultiheadAttention.forward(attn_mask) | True = ignore
    torch.nn: F.scaled_dot_product_attention(attn_mask) | True = attend
    fairseq: MultiheadAttention.forward(attn_mask) | 0 = attend, -inf = ignore
    post: MultiHeadAttention.forward(mask) | True = attend
    dummies: attention(M) | 0 = attend, -inf = ignore
  mask of source padding
    transformer_lib: padding_mask(ids, pad_id) | True = attend
    torch.nn: nn.Transformer.forward(src_key_padding_mask) | True = ignore
    fairseq: TransformerEncoderLayer.forward(encoder_padding_mask) | True = ignore
    Hugging Face: MarianMTModel.forward(attention_mask) | 1 = attend
    post: Transformer.make_src_mask(src) | True = attend
    dummies: $M_e^{right}$
    revisited: Encoder.forward(mask) | True = attend
  mask of target padding
    transformer_lib: padding_mask(ids, pad_id) | True = attend
    torch.nn: nn.Transformer.forward(tgt_key_padding_mask) | True = ignore
    fairseq: TransformerDecoderLayer.forward(self_attn_padding_mask) | True = ignore
    Hugging Face: MarianMTModel.forward(decoder_attention_mask) | 1 = attend
    post: Transformer.make_trg_mask(trg) | True = attend
    dummies: $M_d^{right}$
  the mask of source padding in cross-attention
    transformer_lib: Transformer.decode(src_mask) | True = attend
    torch.nn: nn.Transformer.forward(memory_key_padding_mask) | True = ignore
    fairseq: TransformerDecoderLayer.forward(encoder_padding_mask) | True = ignore
    Hugging Face: MarianDecoderLayer.forward(encoder_attention_mask)
    post: Decoder.forward(src_mask) | True = attend
    dummies: $M_e^{right}$
    revisited: Decoder.forward(src_mask) | True = attend
  mask of the future
    transformer_lib: causal_mask(length) | True = attend
    torch.nn: nn.Transformer.generate_square_subsequent_mask | 0 = attend, -inf = ignore
    fairseq: TransformerDecoder.buffered_future_mask | 0 = attend, -inf = ignore
    Hugging Face: MarianMTModel.get_decoder | made by the decoder itself
    post: Transformer.make_trg_mask(trg) | True = attend
    dummies: $M^C$
    revisited: Decoder.forward(tgt_mask) | True = attend
"""

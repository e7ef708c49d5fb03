"""What the same parameter is called in five dialects: keys of the state dicts.

N stands for the number of a layer, {a, b} for several last words, in the same order in
every dialect. [:d], [d:2d] and [2d:] are rows of a matrix that holds more than one of
ours, d being d_model; [2:] leaves out two rows that serve no position.
"""

from collections.abc import Iterator

_PROJECTIONS = {  # ours -> PyTorch's, whose three projections are one matrix
    "q_proj.{weight, bias}": "in_proj_{weight, bias}[:d]",
    "k_proj.{weight, bias}": "in_proj_{weight, bias}[d:2d]",
    "v_proj.{weight, bias}": "in_proj_{weight, bias}[2d:]",
    "out_proj.{weight, bias}": "out_proj.{weight, bias}",
}
_POST_PROJECTIONS = ("fc_q.weight", "fc_k.weight", "fc_v.weight", "fc.{weight, bias}")
_LECTURE_PROJECTIONS = ("W_q.weight", "W_k.weight", "W_v.weight", "W_h.{weight, bias}")

# side, ours, PyTorch's, fairseq's, the post's, the revisited text's: what holds
# attention. The revisited text is given attention and feed-forward networks; here the
# library's, so that their own parameters keep their names.
_ATTENTIONS = (
    ("encoder", "self_attn", "self_attn", "self_attn", "attention", "self_attn"),
    ("decoder", "self_attn", "self_attn", "self_attn", "dec_attn", "self_attn"),
    ("decoder", "cross_attn", "multihead_attn", "encoder_attn", "enc_attn", "src_attn"),
)
# side, ours, PyTorch's, fairseq's, the post's, number in the revisited text
_NORMS = (
    ("encoder", "self_attn", "norm1", "self_attn_layer_norm", "attention_ln", 0),
    ("encoder", "feed_forward", "norm2", "final_layer_norm", "ff_ln", 1),
    ("decoder", "self_attn", "norm1", "self_attn_layer_norm", "dec_attn_ln", 0),
    ("decoder", "cross_attn", "norm2", "encoder_attn_layer_norm", "enc_attn_ln", 1),
    ("decoder", "feed_forward", "norm3", "final_layer_norm", "ff_ln", 2),
)


def weight_rows() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (term, dialect -> key), in the order of the model."""
    for side, prefix in (("source", "src"), ("target", "tgt")):
        yield from _embedding_rows(side, prefix)
    for side in ("encoder", "decoder"):
        yield from _attention_rows(side)
        yield from _feed_forward_rows(side)
        yield from _norm_rows(side)
    yield (
        "output layer",
        {
            "transformer_lib": "lm_head.{weight, bias}",
            "fairseq": "decoder.output_projection.weight",
            "Hugging Face": "lm_head.weight",
            "post": "decoder.fc.{weight, bias}",
        },
    )


def _embedding_rows(side: str, prefix: str) -> Iterator[tuple[str, dict[str, str]]]:
    stack = "encoder" if side == "source" else "decoder"
    tokens = {
        "transformer_lib": f"{prefix}_embeddings.tokens.weight",
        "fairseq": f"{stack}.embed_tokens.weight",
        "Hugging Face": f"model.{stack}.embed_tokens.weight",
        "post": f"{stack}.tok_embed.weight",
    }
    positions = {
        "transformer_lib": f"{prefix}_embeddings.positions.table",
        "Hugging Face": f"model.{stack}.embed_positions.weight[2:]",
        "post": f"{stack}.pos_embed.weight",
    }
    norm = {
        "transformer_lib": f"{prefix}_embeddings.norm.{{gain, bias}}",
        "fairseq": f"{stack}.layernorm_embedding.{{weight, bias}}",
        "Hugging Face": f"model.{stack}.layernorm_embedding.{{weight, bias}}",
    }
    yield f"{side} embedding", tokens
    yield f"{side} positions, if learned", positions
    yield f"{side} embedding norm", norm


def _attention_rows(side: str) -> Iterator[tuple[str, dict[str, str]]]:
    for where, ours, theirs, fairseq, post, revisited in _ATTENTIONS:
        if where != side:
            continue
        start = f"{side}.layers.N."
        for number, (name, packed) in enumerate(_PROJECTIONS.items()):
            role = ("query", "key", "value", "output")[number]
            row = {
                "transformer_lib": f"{start}{ours}.{name}",
                "torch.nn": f"{start}{theirs}.{packed}",
                "fairseq": f"{start}{fairseq}.{name}",
                "Hugging Face": f"model.{start}{fairseq}.{name}",
                "post": f"{start}{post}.{_POST_PROJECTIONS[number]}",
                "revisited": f"{start}{revisited}.{name}",
            }
            if side == "encoder":
                row["lecture"] = f"enc_layers.N.mha.{_LECTURE_PROJECTIONS[number]}"
            kind = "self-attention" if ours == "self_attn" else "cross-attention"
            yield f"{side} {kind}, {role} projection", row


def _feed_forward_rows(side: str) -> Iterator[tuple[str, dict[str, str]]]:
    for number, ours in enumerate(("expand", "contract"), start=1):
        start = f"{side}.layers.N."
        row = {
            "transformer_lib": f"{start}feed_forward.{ours}.{{weight, bias}}",
            "torch.nn": f"{start}linear{number}.{{weight, bias}}",
            "fairseq": f"{start}fc{number}.{{weight, bias}}",
            "Hugging Face": f"model.{start}fc{number}.{{weight, bias}}",
            "post": f"{start}ff.fc{number}.{{weight, bias}}",
            "revisited": f"{start}feed_forward.{ours}.{{weight, bias}}",
        }
        if side == "encoder":
            row["lecture"] = f"enc_layers.N.cnn.{2 * number - 2}.{{weight, bias}}"
        yield f"{side} feed-forward, $W_{number}$ and $b_{number}$", row


def _norm_rows(side: str) -> Iterator[tuple[str, dict[str, str]]]:
    for where, ours, theirs, fairseq, post, number in _NORMS:
        if where != side:
            continue
        start = f"{side}.layers.N."
        row = {
            "transformer_lib": f"{start}{ours}_connection.norm.{{gain, bias}}",
            "torch.nn": f"{start}{theirs}.{{weight, bias}}",
            "fairseq": f"{start}{fairseq}.{{weight, bias}}",
            "Hugging Face": f"model.{start}{fairseq}.{{weight, bias}}",
            "post": f"{start}{post}.{{weight, bias}}",
            "revisited": f"{start}sublayer.{number}.norm.{{a_2, b_2}}",
        }
        if side == "encoder":
            row["lecture"] = f"enc_layers.N.layernorm{number + 1}.{{weight, bias}}"
        kind = {
            "self_attn": "self-attention",
            "cross_attn": "cross-attention",
            "feed_forward": "feed-forward",
        }[ours]
        yield f"{side} norm of {kind}", row
    yield (
        f"{side} norm at the end, if pre-norm",
        {
            "transformer_lib": f"{side}.norm.{{gain, bias}}",
            "torch.nn": f"{side}.norm.{{weight, bias}}",
            "fairseq": f"{side}.layer_norm.{{weight, bias}}",
            "Hugging Face": f"model.{side}.layer_norm.{{weight, bias}}",
            "revisited": f"{side}.norm.{{a_2, b_2}}",
        },
    )

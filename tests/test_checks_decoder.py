"""The graders of the decoder chapter: right answers pass, wrong ones are named."""

import pytest
import torch

from transformer_lib.exercises.decoder import (
    check_alignment,
    check_incremental,
    check_pre_norm_layer,
    check_shift,
)
from transformer_lib.model.attention import scaled_dot_product_attention
from transformer_lib.model.masks import causal_mask

GRADERS = [check_shift, check_pre_norm_layer, check_alignment, check_incremental]


def shift(target, bos_id):
    return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)


def pre_norm(layer, x, memory, src_mask, tgt_mask):
    return layer(x, memory, src_mask, tgt_mask)  # the grader's layer is pre-norm


def aligned(maps, layer, n_heads):
    return maps[layer][:, :n_heads].mean(dim=1).argmax(dim=-1)


def incremental(layer, x, memory):
    """Keep what was projected, for both attention blocks."""

    def look(block, connection, y, k, v):
        q, k, v = map(block.split_heads, (block.q_proj(y), k, v))
        z, _ = scaled_dot_product_attention(q, k, v)
        return connection.norm(y + block.out_proj(block.join_heads(z)))

    back, across = layer.self_attn, layer.cross_attn
    source = across.k_proj(memory), across.v_proj(memory)
    keys, values, outputs = [], [], []
    for y in x.split(1, dim=1):
        keys.append(back.k_proj(y))
        values.append(back.v_proj(y))
        past = torch.cat(keys, dim=1), torch.cat(values, dim=1)
        y = look(back, layer.self_attn_connection, y, *past)
        y = look(across, layer.cross_attn_connection, y, *source)
        outputs.append(layer.feed_forward_connection(y, layer.feed_forward))
    return torch.cat(outputs, dim=1)


ANSWERS = [shift, pre_norm, aligned, incremental]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_a_wrong_shape_is_named(grader, answer) -> None:
    assert "shape" in grader(lambda *given: answer(*given)[:, :-1]).message


def keep_first_word(target, bos_id):
    return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, 1:]], dim=1)


def in_place(target, bos_id):
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = bos_id
    return target


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda target, bos: target[:, :-1], "comes in front"),
        (lambda target, bos: target.clone(), "nothing is shifted"),
        (lambda target, bos: target.roll(1, dims=1), "begins with <pad>"),
        (lambda target, bos: target.roll(-1, dims=1), "shifted left"),
        (keep_first_word, "nothing moved"),
        (in_place, "was changed"),
        (lambda target, bos: shift(target, 7), "begin with bos_id"),
        (lambda target, bos: shift(target.flip(1), bos), "row 0, position 1 reads 2"),
    ],
)
def test_wrong_shifts_are_named(answer, named) -> None:
    feedback = check_shift(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def by_parts(norm="before", order=(0, 1, 2)):
    """Write a layer out, with its norms elsewhere or its sub-layers in other order."""

    def run(layer, x, memory, src_mask, tgt_mask):
        parts = [
            (layer.self_attn_connection, lambda y: layer.self_attn(y, y, y, tgt_mask)),
            (
                layer.cross_attn_connection,
                lambda y: layer.cross_attn(y, memory, memory, src_mask),
            ),
            (layer.feed_forward_connection, layer.feed_forward),
        ]
        for connection, sublayer in (parts[place] for place in order):
            n = connection.norm
            x = {
                "before": lambda x, n=n, f=sublayer: x + f(n(x)),
                "after": lambda x, n=n, f=sublayer: n(x + f(x)),
                "no sum": lambda x, n=n, f=sublayer: f(n(x)),
                "none": lambda x, f=sublayer: x + f(x),
            }[norm](x)
        return x

    return run


def normalize_memory(layer, x, memory, src_mask, tgt_mask):
    memory = layer.cross_attn_connection.norm(memory)
    return layer(x, memory, src_mask, tgt_mask)


def attend_to_itself(layer, x, memory, src_mask, tgt_mask):
    x = layer.self_attn_connection(x, lambda y: layer.self_attn(y, y, y, tgt_mask))
    x = layer.cross_attn_connection(x, lambda y: layer.cross_attn(y, y, y, src_mask))
    return layer.feed_forward_connection(x, layer.feed_forward)


def test_the_parts_in_the_right_order_pass() -> None:
    assert check_pre_norm_layer(by_parts()).passed


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (by_parts("after"), "this is post-norm"),
        (by_parts("no sum"), "residual sums are missing"),
        (by_parts("none"), "no norm is used"),
        (by_parts(order=(1, 0, 2)), "self-attention comes before"),
        (by_parts(order=(0, 1)), "feed-forward network is missing"),
        (by_parts(order=(0, 2)), "cross-attention is missing"),
        (normalize_memory, "normalized again"),
        (lambda f, x, z, s, t: f(x, z, t, s), "masks are exchanged"),
        (lambda f, x, z, s, t: f(x, z, s, None), "causal mask is missing"),
        (lambda f, x, z, s, t: f(x, z, None, t), "padding mask is missing"),
        (attend_to_itself, "from the memory"),
        (lambda f, x, z, s, t: f(x, z, s, t) + 1, "differs from the layer's"),
    ],
)
def test_wrong_layers_are_named(answer, named) -> None:
    feedback = check_pre_norm_layer(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda maps, i, n: maps[i][:, :n].mean(dim=1), "index of the largest"),
        (lambda maps, i, n: maps[i][:, :n].mean(dim=1).argmax(dim=1), "source is kept"),
        (lambda maps, i, n: maps[i].argmax(dim=-1), "heads are still apart"),
        (lambda maps, i, n: aligned(maps, i, None), "all heads were averaged"),
        (lambda maps, i, n: aligned([m.flip(1) for m in maps], i, n), "last heads"),
        (lambda maps, i, n: maps[i][:, n].argmax(dim=-1), "only the head with"),
        (lambda maps, i, n: maps[i][:, 0].argmax(dim=-1), "only head 0"),
        (lambda maps, i, n: aligned(maps, -1, n), "last layer"),
        (lambda maps, i, n: aligned([sum(maps)], 0, n), "all layers were averaged"),
        (lambda maps, i, n: aligned(maps, i, n) + 1, "look elsewhere"),
    ],
)
def test_wrong_alignments_are_named(answer, named) -> None:
    feedback = check_alignment(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def prefixes(layer, x, memory):
    steps = range(1, x.size(1) + 1)
    return torch.cat([layer(x[:, :t], memory)[:, -1:] for t in steps], dim=1)


def keep_inputs(layer, x, memory):
    """Right results, but all that was kept is projected again in every step."""
    outputs = []
    for t in range(x.size(1)):
        y, past = x[:, t : t + 1], x[:, : t + 1]
        y = layer.self_attn_connection(
            y, lambda y, past=past: layer.self_attn(y, past, past)
        )
        y = layer.cross_attn_connection(
            y, lambda y: layer.cross_attn(y, memory, memory)
        )
        outputs.append(layer.feed_forward_connection(y, layer.feed_forward))
    return torch.cat(outputs, dim=1)


def project_memory_twice(layer, x, memory):
    result = incremental(layer, x, memory)
    layer.cross_attn.v_proj(memory)
    return result


def alone(layer, x, memory):
    return torch.cat([layer(y, memory) for y in x.split(1, dim=1)], dim=1)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda layer, x, z: layer(x, z), "seen later ones"),
        (alone, "saw itself only"),
        (lambda layer, x, z: layer(x, z, None, causal_mask(5)), "one at a time"),
        (prefixes, "one at a time"),
        (keep_inputs, "one at a time"),
        (project_memory_twice, "14 positions went through cross_attn.v_proj"),
        (lambda layer, x, z: incremental(layer, x, z + 1), "position 0 is the first"),
    ],
)
def test_wrong_incremental_layers_are_named(answer, named) -> None:
    feedback = check_incremental(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def test_the_counting_hooks_leave_the_layer() -> None:
    kept = []

    def answer(layer, x, memory):
        kept.append(layer)
        return incremental(layer, x, memory)

    check_incremental(answer)
    assert not any(m._forward_pre_hooks for m in kept[0].modules())

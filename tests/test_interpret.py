"""Attention is recorded, changed and measured from outside, and nothing stays so."""

import copy
import math
from itertools import product

import pytest
import torch
from small_models import make_model
from torch import Tensor

from transformer_book.head_types import (
    count_types,
    positional_relations,
    relation_from_pairs,
    relation_weight,
)
from transformer_lib.interpret import (
    edit_weights,
    equal_weights,
    named_attentions,
    record_value_norms,
    shuffled_weights,
    without_head,
)
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.attention import MultiHeadAttention, fused_attention
from transformer_lib.model.transformer import Transformer

SRC = torch.tensor([[5, 6, 4, 2, 0], [6, 4, 3, 6, 2]])
TGT = torch.tensor([[1, 5, 4], [1, 6, 0]])
NAMES = [
    "encoder.layers.0.self_attn",
    "decoder.layers.0.self_attn",
    "decoder.layers.1.cross_attn",
]


@pytest.fixture
def model() -> Transformer:
    return make_model()  # its biases are drawn: 0 would hide that one is forgotten


@torch.no_grad()
def run(model: Transformer) -> Tensor:
    return model(SRC, TGT)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("heads", [[0], [1], [0, 2]])
def test_an_edit_changes_what_it_says_and_nothing_stays(model, name, heads) -> None:
    other = copy.deepcopy(model)
    attention = other.get_submodule(name)
    with torch.no_grad():
        columns = attention.out_proj.weight.unflatten(1, (3, attention.d_head))
        columns[:, heads] = 0.0
    before = run(model)
    with edit_weights(model, {name: lambda weights, allowed: weights}):
        torch.testing.assert_close(run(model), before)
    with edit_weights(model, {name: without_head(*heads)}):
        torch.testing.assert_close(run(model), run(other))
        assert not torch.allclose(run(model), before)
    assert torch.equal(run(model), before), "the model is itself again"


def test_edits_follow_one_another(model) -> None:
    with (
        edit_weights(model, {NAMES[0]: lambda weights, allowed: weights + 1}),
        edit_weights(model, {NAMES[0]: lambda weights, allowed: 0 * weights}),
        record_attention(model) as maps,
    ):
        run(model)
    assert maps[NAMES[0]].count_nonzero() == 0


def test_edited_weights_drop_out_while_training_and_are_recorded_before() -> None:
    model = make_model(dropout=0.0, attention_dropout=0.5)
    same = edit_weights(model, {NAMES[0]: lambda weights, allowed: weights})
    with same, record_attention(model) as maps:
        for training in (True, False):
            model.encoder.train(training)
            assert torch.equal(run(model), run(model)) != training
            sums = maps[NAMES[0]].sum(dim=-1)
            torch.testing.assert_close(sums, torch.ones_like(sums))


def test_a_kernel_that_shows_no_weights_is_refused(model) -> None:
    model.get_submodule(NAMES[0]).kernel = lambda q, k, v, mask, dropout: v
    with pytest.raises(ValueError, match="shows no weights"), record_attention(model):
        pass


def test_the_model_is_itself_again_after_an_error(model) -> None:
    before = run(model)
    edits = {NAMES[0]: lambda weights, allowed: weights[:, :1]}
    message = r"shape \(2, .*but the edit returned \(2,"
    with pytest.raises(ValueError, match=message), edit_weights(model, edits):
        run(model)
    assert torch.equal(run(model), before)
    assert {each.kernel for _, each in named_attentions(model)} == {fused_attention}


def test_norms_are_those_of_one_key_at_a_time() -> None:
    attention = MultiHeadAttention(6, 3, d_inputs=(6, 5, 5)).double()
    torch.nn.init.normal_(attention.v_proj.bias)
    query = torch.randn(2, 4, 6, dtype=torch.float64)
    memory = torch.randn(2, 7, 5, dtype=torch.float64)
    with record_value_norms(attention) as norms, torch.no_grad():
        attention(query, memory, memory)
    assert norms[""].shape == (2, 3, 7)
    bias = attention.out_proj.bias

    def only(head: int, k: int):
        def edit(weights: Tensor, allowed: Tensor) -> Tensor:
            weights[:] = 0.0
            weights[:, head, :, k] = 1.0
            return weights

        return edit

    for head, k in product(range(3), range(7)):
        with edit_weights(attention, {"": only(head, k)}), torch.no_grad():
            added = attention(query, memory, memory) - bias
        torch.testing.assert_close(added[:, 0].norm(dim=-1), norms[""][:, head, k])


def test_what_is_recorded_is_what_is_used(model) -> None:
    with (
        edit_weights(model, {NAMES[2]: lambda weights, allowed: 2 * weights}),
        record_attention(model) as maps,
        record_value_norms(model) as norms,
    ):
        run(model)
    doubled = maps[NAMES[2]].sum(dim=-1)
    torch.testing.assert_close(doubled, torch.full_like(doubled, 2.0))
    assert len(norms) == len(maps) == 5


@pytest.fixture
def masked() -> tuple[Tensor, Tensor]:
    """Weights (2, 3, 5, 7) that keep to a mask with holes, and the mask."""
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(2, 1, 5, 7, generator=generator) < 0.6
    allowed[..., 3] = True
    allowed = allowed.expand(2, 3, 5, 7)
    scores = torch.randn(2, 3, 5, 7, generator=generator, dtype=torch.float64)
    return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1), allowed


def test_equal_weights_are_one_over_the_number_of_keys(masked) -> None:
    weights, allowed = masked
    edited = equal_weights(0, 2)(weights.clone(), allowed)
    shares = allowed / allowed.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(edited[:, ::2], shares[:, ::2].double())
    assert torch.equal(edited[:, 1], weights[:, 1])
    nothing = torch.zeros(1, 1, 1, 4)  # where no key may be attended to
    assert torch.equal(equal_weights(0)(nothing.clone(), nothing.bool()), nothing)


def test_shuffled_weights_stay_in_their_row_and_behind_the_mask(masked) -> None:
    weights, allowed = masked
    edited = shuffled_weights(0, 2)(weights.clone(), allowed)
    torch.testing.assert_close(edited.sort().values, weights.sort().values)
    assert (edited[~allowed] == 0).all()
    assert torch.equal(edited[:, 1], weights[:, 1])
    moved = (edited != weights).any(dim=-1).float().mean(dim=(0, 2))  # of each head
    assert moved[0] > 0.8 and moved[2] > 0.8
    assert torch.equal(shuffled_weights(0, 2)(weights.clone(), allowed), edited)
    other = shuffled_weights(0, 2, seed=1)(weights.clone(), allowed)
    assert not torch.equal(other, edited)


# --- recording ------------------------------------------------------------------------


def test_every_attention_is_recorded_and_the_result_stays(model) -> None:
    expected = run(model)
    with record_attention(model) as maps, record_hidden_states(model) as states:
        torch.testing.assert_close(run(model), expected)
    assert [tuple(weights.shape) for weights in maps.values()] == [
        (2, 3, 5, 5), (2, 3, 3, 3), (2, 3, 3, 5), (2, 3, 3, 3), (2, 3, 3, 5),
    ]  # fmt: skip
    assert list(maps) == [name for name, _ in named_attentions(model)]
    for weights in maps.values():
        sums = weights.sum(-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
    assert (maps["decoder.layers.0.cross_attn"][0, :, :, 4] == 0).all()
    assert maps["decoder.layers.0.self_attn"].triu(1).sum() == 0
    x = model.encoder.layers[0](model.src_embeddings(SRC), (SRC != 0)[:, None, None])
    torch.testing.assert_close(states["encoder.layers.0"], x.detach())
    assert list(states) == ["encoder.layers.0", "decoder.layers.0", "decoder.layers.1"]


def test_recorded_weights_are_cut_from_the_graph(model) -> None:
    with record_attention(model) as outer:
        with record_attention(model.encoder) as inner:
            pass
        model(SRC, TGT).sum().backward()
    assert inner == {} and len(outer) == 5  # the outer recording goes on
    assert not any(weights.requires_grad for weights in outer.values())
    assert model.encoder.layers[0].self_attn.q_proj.weight.grad.abs().sum() > 0


def test_states_are_cut_from_the_graph_and_recorded_inside_the_block_only(model):
    with record_hidden_states(model) as states:
        model(SRC, TGT)
    assert len(states) == 3
    assert not any(state.requires_grad for state in states.values())
    states.clear()
    run(model)
    assert states == {}


# --- what a head looks at -------------------------------------------------------------

Q_REAL = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], dtype=torch.bool)
K_REAL = torch.tensor([[1, 1, 1], [1, 1, 0]], dtype=torch.bool)


def test_positional_relations_hold_for_one_real_key_at_most() -> None:
    relations = positional_relations(Q_REAL, K_REAL)
    for n, q in product(range(2), range(5)):
        n_keys = int(K_REAL[n].sum())
        places = {"previous": q - 1, "same": q, "next": q + 1}
        places |= {"first": 0, "last": n_keys - 1}
        assert relations.keys() == places.keys()
        for name, key in places.items():
            holds = bool(Q_REAL[n, q]) and 0 <= key < n_keys
            found = relations[name][n, q].nonzero().flatten().tolist()
            assert found == [key] * holds


def test_pairs_become_a_relation() -> None:
    relation = relation_from_pairs([[(0, 2), (1, 0)], []], q_len=3, k_len=4)
    assert relation.nonzero().tolist() == [[0, 0, 2], [0, 1, 0]]
    with pytest.raises(IndexError, match="sentence 0: pair"):
        relation_from_pairs([[(-1, 0)]], 3, 4)
    with pytest.raises(IndexError):
        relation_from_pairs([[(0, 4)]], 3, 4)


def slow_weight(weights: Tensor, relation: Tensor, allowed: Tensor) -> list[float]:
    """The mean over queries with a choice and such a key, one at a time."""
    means = []
    for head in weights.unbind(1):
        found = []
        for n, q in product(*map(range, head.shape[:2])):
            keys = [k for k in range(7) if allowed[n, q, k] and relation[n, q, k]]
            if keys and allowed[n, q].sum() >= 2:
                found.append(sum(head[n, q, k].item() for k in keys))
        means.append(sum(found) / len(found))
    return means


@pytest.mark.parametrize("seed", range(5))
def test_the_weight_on_a_relation_is_that_of_a_slow_count(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(2, 3, 5, 7, generator=generator, dtype=torch.float64)
    relation = torch.rand(2, 5, 7, generator=generator) < 0.3
    allowed = torch.rand(5, 7, generator=generator) < 0.4  # of both sentences
    found = relation_weight(weights, relation, allowed)
    expected = slow_weight(weights, relation, allowed.expand(2, -1, -1))
    assert found.tolist() == pytest.approx(expected)
    nobody = torch.zeros_like(relation)
    assert relation_weight(weights, nobody, allowed).isnan().all()


def test_types_are_counted_over_heads() -> None:
    table = {
        "previous": {"a": 0.6, "b": 0.2, "c": 0.1},
        "same": {"a": 0.3, "b": 0.7, "c": 0.4},
        "alignment": {"b": 0.8},
    }
    assert count_types(table, 0.5) == {"previous": 1, "alignment": 1}
    assert count_types(table, 0.4) == {"previous": 1, "alignment": 1, "same": 1}
    assert count_types(table, 0.9) == {}
    with pytest.raises(ValueError, match="a weight is NaN"):
        count_types({"same": {"a": math.nan}, "next": {"a": 0.9}}, 0.5)

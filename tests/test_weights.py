"""Weights that fit are loaded and averaged; others are refused by name."""

import pytest
import torch
from torch import Tensor, nn

from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.state_dict import average_tensors, load_weights
from transformer_lib.model.transformer import Transformer


def make_model(vocab_size: int = 7, seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(
        TransformerConfig(
            src_vocab_size=vocab_size,
            tgt_vocab_size=vocab_size,
            d_model=4,
            n_heads=2,
            d_ff=6,
            n_encoder_layers=1,
            n_decoder_layers=1,
        )  # fmt: skip
    )


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def test_weights_are_copied_and_stay_tied() -> None:
    model, other = make_model(), make_model(seed=1)
    load_weights(model, weights_of(other), "a file")
    assert torch.equal(model.lm_head.weight, other.lm_head.weight)
    assert model.lm_head.weight is model.src_embeddings.tokens.weight


def test_another_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weight has shape \(9, 4\) in a file, but "
                                         r"\(7, 4\) in the model"):  # fmt: skip
        load_weights(make_model(7), weights_of(make_model(9)), "a file")


def test_missing_and_foreign_tensors_are_refused() -> None:
    state = weights_of(make_model())
    removed = {name: t for name, t in state.items() if name != "lm_head.weight"}
    with pytest.raises(ValueError, match="a file has no lm_head.weight, but the model"):
        load_weights(make_model(), removed, "a file")
    foreign = {**state, "pooler.bias": torch.zeros(1)}
    with pytest.raises(ValueError, match="a file has pooler.bias, but the model does"):
        load_weights(make_model(), foreign, "a file")


def test_a_refused_state_changes_nothing() -> None:
    model, other = make_model(), weights_of(make_model(seed=1))
    del other["lm_head.weight"]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match="has no"):
        load_weights(model, other, "a file")
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())


def test_the_average_is_the_mean_name_by_name() -> None:
    states = [
        {"a": torch.full((2,), x), "b": torch.tensor(-x)} for x in (1.0, 2.0, 6.0)
    ]
    average = average_tensors(states)
    assert average["a"].tolist() == [3.0, 3.0]
    assert average["b"].item() == -3.0
    assert states[0]["a"].tolist() == [1.0, 1.0]


def test_the_average_keeps_the_type_and_sums_in_float64() -> None:
    big, small = torch.tensor([1e8]), torch.tensor([4.0])  # float32 drops each 4
    average = average_tensors([{"a": big}] + [{"a": small}] * 3)
    assert average["a"].dtype == torch.float32
    assert average["a"] == torch.tensor((1e8 + 12) / 4)
    assert average["a"] != 1e8 / 4


def test_averages_of_nothing_and_of_unlike_models_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 model"):
        average_tensors([])
    with pytest.raises(ValueError, match=r"\(9, 4\) in model 1, but \(7, 4\)"):
        average_tensors([make_model(7).state_dict(), make_model(9).state_dict()])


def test_another_kind_of_model_is_refused() -> None:
    with pytest.raises(ValueError, match="nn has no weight"):
        load_weights(nn.Linear(2, 2), weights_of(nn.LSTM(2, 2)), "nn")

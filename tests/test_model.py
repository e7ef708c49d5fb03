"""The whole model against nn.Transformer, its guarantees, and the classifier."""

from dataclasses import replace

import pytest
import small_models
import torch
import torch.nn.functional as F
from reference import EXACT, draw_parameters, gradients
from torch import nn

import transformer_lib as tl
from transformer_lib.convert import convert_weights

SIZES = {"src_vocab_size": 13, "tgt_vocab_size": 11, "n_encoder_layers": 2}
CONFIG = replace(small_models.CONFIG, **SIZES, n_decoder_layers=3, dropout=0.0)
SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 0, 0]])
VARIANTS = pytest.mark.parametrize("norm_first", [False, True], ids=["post", "pre"])


def make_model(**changes) -> tl.Transformer:
    torch.manual_seed(0)
    return draw_parameters(tl.Transformer(replace(CONFIG, **changes)))


def make_reference(model: tl.Transformer) -> nn.Transformer:
    """PyTorch's own layers with the same weights."""
    config = model.config
    theirs = nn.Transformer(
        config.d_model,
        config.n_heads,
        config.n_encoder_layers,
        config.n_decoder_layers,
        config.d_ff,
        dropout=0.0,
        activation=F.silu if config.activation == "swish" else config.activation,
        batch_first=True,
        norm_first=config.norm_first,
    ).double()
    if model.encoder.norm is None:  # PyTorch ends both stacks with a norm in any case
        theirs.encoder.norm = theirs.decoder.norm = None
    weights = convert_weights(model.state_dict(), "transformer_lib", "torch.nn")
    theirs.load_state_dict(weights)
    return theirs


@VARIANTS
@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
@pytest.mark.parametrize("masked", [False, True], ids=["no mask", "masks"])
def test_the_model_and_all_its_gradients_equal_nn_transformer(
    norm_first, activation, masked
) -> None:
    model = make_model(norm_first=norm_first, activation=activation)
    theirs = make_reference(model)
    src_mask = tgt_mask = None
    options = {}
    if masked:
        src_mask = tl.padding_mask(SRC, 0)
        tgt_mask = tl.padding_mask(TGT_IN, 0) & tl.causal_mask(TGT_IN.size(1))
        sides = {"src": SRC, "memory": SRC, "tgt": TGT_IN}
        options = {f"{side}_key_padding_mask": ids == 0 for side, ids in sides.items()}
        options["tgt_mask"] = torch.ones(4, 4).triu(1).bool()
    embeddings = model.src_embeddings(SRC), model.tgt_embeddings(TGT_IN)
    output = model.decode(TGT_IN, model.encode(SRC, src_mask), src_mask, tgt_mask)
    expected = theirs(*embeddings, **options)
    torch.testing.assert_close(output, expected, **EXACT)
    if masked:  # forward makes the same masks by itself
        torch.testing.assert_close(model(SRC, TGT_IN), model.lm_head(output), **EXACT)

    tables = [p for name, p in model.named_parameters() if "embeddings.tokens" in name]
    found, wanted = (gradients(each, tables) for each in (output, expected))
    torch.testing.assert_close(found, wanted, **EXACT)
    inner = ("encoder.", "decoder.")
    mine = {n: p for n, p in model.named_parameters() if n.startswith(inner)}
    other = dict(theirs.named_parameters())
    found = dict(zip(mine, gradients(output, [*mine.values()]), strict=True))
    wanted = dict(zip(other, gradients(expected, [*other.values()]), strict=True))
    renamed = convert_weights(found, "transformer_lib", "torch.nn", strict=True)
    torch.testing.assert_close(renamed, wanted, **EXACT)


@VARIANTS
def test_later_targets_do_not_change_earlier_logits(norm_first) -> None:
    model = make_model(norm_first=norm_first)
    changed = TGT_IN.clone()
    changed[0, 2] = 5
    before, after = model(SRC, TGT_IN), model(SRC, changed)
    torch.testing.assert_close(before[0, :2], after[0, :2], **EXACT)
    assert (before[0, 2:] - after[0, 2:]).abs().max() > 1e-3


@VARIANTS
def test_padding_does_not_change_the_rest(norm_first) -> None:
    model = make_model(norm_first=norm_first)
    padded = model(SRC, TGT_IN)[1, :2]
    alone = model(SRC[1:, :3], TGT_IN[1:, :2])[0]
    torch.testing.assert_close(padded, alone, **EXACT)
    other_pad = model(SRC[1:, :3].clone().fill_(4), TGT_IN[1:, :2])[0]
    assert (other_pad - alone).abs().max() > 1e-3


@VARIANTS
def test_a_sentence_of_padding_leaves_the_model_finite(norm_first) -> None:
    model = make_model(norm_first=norm_first)
    src, tgt_in = SRC.clone(), TGT_IN.clone()
    src[1] = tgt_in[1] = 0
    logits = model(src, tgt_in)
    assert logits.isfinite().all()
    assert all(
        each.isfinite().all() for each in gradients(logits, [*model.parameters()])
    )
    torch.testing.assert_close(logits[0], model(SRC, TGT_IN)[0], **EXACT)


@pytest.mark.parametrize(
    ("tying", "matrices"), [("none", 3), ("decoder", 2), ("all", 1)]
)
def test_tied_matrices_are_one_and_count_once(tying, matrices) -> None:
    model = make_model(src_vocab_size=11, tie_embeddings=tying)
    untied = make_model(src_vocab_size=11, tie_embeddings="none")
    shared = {
        model.src_embeddings.tokens.weight.data_ptr(),
        model.tgt_embeddings.tokens.weight.data_ptr(),
        model.lm_head.weight.data_ptr(),
    }
    assert len(shared) == matrices
    saved = tl.count_parameters(untied) - tl.count_parameters(model)
    assert saved == (3 - matrices) * 11 * CONFIG.d_model


def test_tied_logits_start_with_unit_variance() -> None:
    torch.manual_seed(0)
    sizes = {"src_vocab_size": 2_000, "tgt_vocab_size": 2_000, "d_model": 64}
    config = replace(CONFIG, **sizes, n_heads=4, tie_embeddings="all")
    model = tl.Transformer(config).eval()
    logits = model(torch.randint(4, 2_000, (4, 9)), torch.randint(4, 2_000, (4, 8)))
    assert logits.std().item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    "make", [tl.Transformer, lambda config: tl.EncoderClassifier(config, n_classes=4)]
)
def test_every_matrix_of_a_model_starts_so(make) -> None:
    torch.manual_seed(0)
    model = make(CONFIG)
    linears = [part for part in model.modules() if isinstance(part, nn.Linear)]
    for linear in linears:
        limit = (6 / (linear.in_features + linear.out_features)) ** 0.5
        assert 0.8 * limit < linear.weight.abs().max() <= limit
        assert linear.bias is None or (linear.bias == 0).all()
    assert len(linears) > 8


def test_the_classifier_pools_the_maximum_over_real_positions() -> None:
    torch.manual_seed(0)
    classifier = draw_parameters(tl.EncoderClassifier(CONFIG, n_classes=4))
    logits = classifier(SRC)
    memory = classifier.encoder(classifier.embeddings(SRC[1:, :3]))
    expected = classifier.head(memory[0].max(dim=0).values)
    torch.testing.assert_close(logits[1], expected, **EXACT)
    assert logits.shape == (2, 4)

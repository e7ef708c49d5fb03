"""Models on disk translate as before, and damaged or foreign ones are refused."""

import json

import pytest
import torch
from reference import draw_parameters
from torch import nn

import transformer_lib
import transformer_lib as tl
from transformer_lib import cli
from transformer_lib.pretrained.translator import MODELS, read_terms
from transformer_lib.runs import evaluate as score

TEXTS = ["the cat sleeps", "die Katze schläft", "a dog sees the old man today"]


def make_translator() -> tl.Translator:
    torch.manual_seed(0)
    tokenizer = tl.Tokenizer.from_words(TEXTS)
    sizes = {"src_vocab_size": len(tokenizer), "tgt_vocab_size": len(tokenizer)}
    sizes |= {"d_model": 12, "n_heads": 2, "d_ff": 8, "max_len": 20}
    config = tl.TransformerConfig(**sizes, n_encoder_layers=1, n_decoder_layers=1)
    # An untrained model would repeat what it reads.
    return tl.Translator(draw_parameters(tl.Transformer(config)).float(), tokenizer)


@pytest.fixture
def saved(tmp_path):
    make_translator().save(tmp_path / "mine")
    return tmp_path / "mine"


def test_a_saved_model_is_the_rounded_one(saved):
    before, after = make_translator().model, tl.load(saved).model
    torch.testing.assert_close(
        after.state_dict(), before.half().float().state_dict(), rtol=0, atol=0
    )
    assert after.lm_head.weight is after.src_embeddings.tokens.weight
    n_weights = sum(p.numel() for p in after.parameters())
    size = (saved / "model.safetensors").stat().st_size
    assert 2 * n_weights < size < 2 * n_weights + 5000  # 16 bits, tied ones once
    assert not after.training


@pytest.mark.parametrize("n_beams", [1, 3])
def test_translations_come_in_the_order_of_the_sentences(n_beams):
    translator = make_translator()
    together = translator.translate(TEXTS, n_beams, batch_tokens=12)
    assert together == [translator.translate([text], n_beams)[0] for text in TEXTS]
    assert len(set(together)) > 1  # otherwise any order would do
    assert translator.translate([], n_beams) == []
    src = torch.tensor([translator.tokenizer.encode(TEXTS[0])])
    rules = tl.GenerationConfig(bos_id=1, eos_id=2, max_len=20)
    [[best, *_]] = tl.beam_search(translator.model, src, rules, n_beams)
    assert together[0] == translator.tokenizer.decode(best.ids)


@pytest.mark.parametrize(("batch_tokens", "n_batches"), [(1, len(TEXTS)), (999, 1)])
def test_a_batch_has_no_more_tokens_than_it_may(batch_tokens, n_batches):
    translator, seen = make_translator(), []
    translator.model.encoder.register_forward_hook(lambda *_: seen.append(1))
    translator.translate(TEXTS, batch_tokens=batch_tokens)
    assert len(seen) == n_batches > 0


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [(3, 8)]),
        ({"batch_tokens": 12}, [(1, 8), (2, 4)]),
        ({"batch_tokens": 1}, [(1, 8), (1, 4), (1, 4)]),
    ],
)
@pytest.mark.parametrize("n_beams", [1, 3])
def test_a_batch_has_as_many_tokens_as_are_allowed(options, sizes, n_beams):
    translator, found = make_translator(), []
    translator.model.encoder.register_forward_pre_hook(
        lambda encoder, given: found.append(tuple(given[0].shape[:2]))
    )
    translator.translate(TEXTS, n_beams, **options)
    assert found == sizes  # sentences, tokens with padding


@pytest.mark.parametrize("n_beams", [1, 3])
def test_a_translation_that_does_not_end_is_as_long_alone_as_among_others(n_beams):
    translator = make_translator()
    translator.model.lm_head = endless(translator.model.lm_head)
    together = translator.translate(TEXTS, n_beams, extra_len=3)
    alone = [translator.translate([text], n_beams, extra_len=3)[0] for text in TEXTS]
    assert together == alone
    lengths = [len(translator.tokenizer.encode(text, eos=False)) for text in together]
    assert lengths == [4 + 3, 4 + 3, 8 + 3]  # source and its eos, and 3 more


def endless(lm_head: nn.Linear) -> nn.Linear:
    """Return a layer that never scores eos, or anything else special, highest."""
    changed = nn.Linear(lm_head.in_features, lm_head.out_features)
    with torch.no_grad():
        changed.weight.copy_(lm_head.weight)
        changed.bias.zero_()[:4] = -1e4
    return changed


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "sentence 2: a sentence needs at least 1 word"),
        ("the cat " * 10, "sentence 2 has 21 tokens, but the model takes at most 20"),
    ],
)
def test_a_sentence_that_cannot_be_translated_is_named(sentence, message):
    with pytest.raises(ValueError, match=message):
        make_translator().translate(["the cat", sentence])


def test_damaged_and_foreign_files_are_refused(saved):
    weights, config = saved / "model.safetensors", saved / "config.json"
    data, text = weights.read_bytes(), config.read_text()
    larger = json.loads(text) | {"src_vocab_size": 99, "tgt_vocab_size": 99}
    for file, content, message in (
        (weights, data[:-10], "model.safetensors is truncated or damaged"),
        (weights, b"PK\x03\x04 a pickle in a zip", "model.safetensors is truncated"),
        (config, b'{"hidden_size": 512}', "config.json describes no model"),
        (config, json.dumps(larger).encode(), r"\(16, 12\) in .*model\.s.*, but \(99"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            tl.load(saved)
        weights.write_bytes(data), config.write_text(text)
    tl.Tokenizer.from_words(["the cat"]).save(saved / "tokenizer.json")
    with pytest.raises(ValueError, match="has 6 tokens, but the model 16 and 16"):
        tl.load(saved)


def test_another_padding_is_refused(saved):
    config = saved / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pad_id": 2}))
    with pytest.raises(ValueError, match="pads with 0, but the model takes 2 for pad"):
        tl.load(saved)


def test_another_kind_of_folder_is_named(saved):
    config = saved / "config.json"
    fields = json.loads(config.read_text())
    for content, message in (
        (
            {"classes": ["no", "yes"]},
            "of a classifier, which `load_classifier` reads",
        ),
        (fields | {"depth": 3, "n_experts": 8}, "no .* has the field depth, n_experts"),
    ):
        config.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            tl.load(saved)
    config.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match="that of a translator, which `load` reads"):
        tl.load_classifier(saved)
    (saved / "recipe.json").touch()
    config.unlink()
    with pytest.raises(FileNotFoundError, match="is not finished: .* --resume"):
        tl.load(saved)


def test_a_card_says_what_is_asked(saved):
    assert read_terms(saved) is None  # it has no card
    (saved / "README.md").write_text("# Mine\n- Terms: free\n- Sentences: captions\n")
    assert read_terms(saved) == "free"
    assert read_terms(saved, "Sentences") == "captions"
    assert read_terms(saved, "Age") is None


def test_an_unknown_name_is_answered_with_those_there_are():
    known = (
        "grammar, home-assistant, home-assistant-random, multi30k-de-en, multi30k-en-de"
    )
    with pytest.raises(FileNotFoundError, match=f"'nonesuch': .* models are {known}$"):
        transformer_lib.load("nonesuch")


def test_a_shipped_model_translates_a_caption():
    translator = transformer_lib.load("multi30k-de-en")
    [translation] = translator.translate(["Zwei Kinder spielen im Schnee."], n_beams=4)
    assert translation == "Two children are playing in the snow."


@pytest.mark.parametrize("folder", sorted(MODELS.glob("*/config.json")), ids=str)
def test_a_shipped_model_translates_and_has_a_card(folder):
    folder = folder.parent
    [translation] = tl.load(folder.name).translate(["the dog sees the cat"])
    assert translation
    assert (folder / "model.safetensors").stat().st_size < 15 * 2**20
    card = (folder / "README.md").read_text(encoding="utf-8")
    noted = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    for search in noted["searches"]:
        for entry in search["scores"]:
            assert f"| {entry['value']:.1f} | {entry['low']:.1f} to " in card


@pytest.mark.slow
def test_the_scores_of_a_card_are_those_of_its_weights():
    noted = json.loads((MODELS / "grammar/scores.json").read_text(encoding="utf-8"))
    recipe = score.read_recipe_of("grammar")
    corpus = score.load_corpus_of("grammar", recipe)
    found = score.evaluate(tl.load("grammar"), corpus, recipe)
    assert found["n_parameters"] == noted["n_parameters"]
    assert found["valid_nats"] == pytest.approx(noted["valid_nats"], rel=1e-3)
    for mine, theirs in zip(found["searches"], noted["searches"], strict=True):
        # Another processor rounds otherwise: two sentences in a thousand may differ.
        assert mine["exact"] == pytest.approx(theirs["exact"], abs=0.002)


@pytest.mark.parametrize(("options", "n_beams"), [([], 4), (["--beams", "1"], 1)])
def test_the_command_translates(saved, capsys, options, n_beams):
    """It reads lines as well: `test_commands` has how it is called by a shell."""
    cli.main(["translate", "--model", str(saved), *options, *TEXTS])
    expected = tl.load(saved).translate(TEXTS, n_beams)
    assert capsys.readouterr().out.splitlines() == expected
    with pytest.raises(SystemExit, match="error: sentence 2 has 21 tokens"):
        cli.main(["translate", "--model", str(saved), "the cat", 10 * "the cat "])

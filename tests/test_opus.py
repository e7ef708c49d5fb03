"""Models of OPUS-MT: read from a folder as they are kept on the hub, without a network.

The model in the folder is freshly drawn. The tokenizer is a stand-in with the methods
of Marian's, which needs two trained models of sentencepiece.
"""

import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
import torch
import transformers

from transformer_lib.convert import load_opus
from transformer_lib.convert.opus_mt import OpusTokenizer

WORDS = ["</s>", "<unk>", "guten", "morgen", "welt", "good", "night", "world", "<pad>"]


class MarianTokenizer:
    """Words instead of pieces; special tokens as Marian's."""

    pad_token_id, eos_token_id = 8, 0

    @classmethod
    def from_pretrained(cls, name) -> "MarianTokenizer":
        return cls()

    def __call__(self, text) -> dict[str, list[int]]:
        return {"input_ids": [*map(WORDS.index, text.split()), self.eos_token_id]}

    def decode(self, ids, skip_special_tokens) -> str:
        special = {self.pad_token_id, self.eos_token_id} if skip_special_tokens else ()
        return " ".join(WORDS[i] for i in ids if i not in special)

    def convert_ids_to_tokens(self, ids) -> list[str]:
        return [WORDS[i] for i in ids]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model as OPUS-MT's are: ids, activation, bias of the output."""
    config = transformers.MarianConfig(
        vocab_size=len(WORDS), d_model=8, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12,
        decoder_ffn_dim=12, max_position_embeddings=64, activation_function="swish",
        scale_embedding=True, pad_token_id=8, decoder_start_token_id=8, eos_token_id=0,
        forced_eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config)
    model.final_logits_bias.normal_()[0, 0] = -3.0  # or it ends at once
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data.add_(0.4 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    # Put there without a look at theirs, which would load the real sentencepiece.
    theirs = vars(sys.modules["transformers"])
    monkeypatch.setitem(theirs, "MarianTokenizer", MarianTokenizer)
    return tmp_path


@pytest.mark.parametrize("n_beams", [1, 3])
def test_translations_are_those_of_hugging_face(folder, n_beams) -> None:
    translator = load_opus(folder)
    theirs = transformers.MarianMTModel.from_pretrained(folder).eval()
    found = []
    for text in ("guten morgen", "guten welt morgen welt", "welt"):
        ids = torch.tensor([MarianTokenizer()(text)["input_ids"]])
        expected = theirs.generate(
            ids, num_beams=n_beams, max_new_tokens=ids.size(1) + 4,
            bad_words_ids=[[8]], do_sample=False, forced_eos_token_id=None,
        )[0]  # fmt: skip
        found += translator.translate([text], n_beams=n_beams, extra_len=4)
        assert found[-1] == MarianTokenizer().decode(expected.tolist(), True)
    assert any(found)


@torch.no_grad()
def test_the_chapter_translates_with_it_in_colab(folder, monkeypatch, capsys) -> None:
    chapter = Path(__file__).parents[1] / "book/11_generating_a_translation.ipynb"
    sources = [cell.source for cell in nbformat.read(chapter, 4).cells]
    (cell,) = (source for source in sources if "load_opus(" in source)
    names = {}
    exec(next(source for source in sources if source.startswith("import math")), names)
    names["load_opus"] = lambda name: load_opus(folder)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("colab"))
    exec(cell.replace(cell.split('"')[1], "guten morgen"), names)
    said = load_opus(folder).translate(["guten morgen"], n_beams=4)[0]
    sentence, printed = capsys.readouterr().out.splitlines()
    assert sentence == "guten morgen" and printed.startswith(said)  # cut earlier


def test_ids_and_text() -> None:
    tokenizer = OpusTokenizer(MarianTokenizer(), n_tokens=9)
    assert tokenizer.encode("guten welt", bos=True) == [8, 2, 4, 0]
    assert tokenizer.encode("guten welt", eos=False) == [2, 4]
    assert tokenizer.decode([5, 6, 0]) == "good night"
    assert tokenizer.tokens([2, 3, 0]) == ["guten", "morgen", "</s>"]
    assert (len(tokenizer), tokenizer.bos_id, tokenizer.eos_id) == (9, 8, 0)
    with pytest.raises(ValueError, match="no word"):
        tokenizer.encode("  ")


def test_a_tokenizer_that_has_no_file_of_ours_leaves_no_half_of_a_model(folder) -> None:
    with pytest.raises(AttributeError, match="to_json"):
        load_opus(folder).save(folder / "mine")
    assert not (folder / "mine").exists()


def test_a_pickle_is_not_read(folder) -> None:
    theirs = transformers.MarianMTModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(OSError, match="model.safetensors"):
        load_opus(folder)

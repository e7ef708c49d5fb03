"""A class or function that a chapter writes is the library's: one syntax tree.

A cell names in its metadata what it defines: `"defines": "transformer_lib.model.
attention.MultiHeadAttention"`, or a list of such names. Docstrings and annotations are
left out, calls of functions `require_…`, which refuse what makes no sense, and the last
argument, keywords made of it, and an `if` about it where a later part is about nothing
else: `cache` in chapters before the one about decoding step by step, and `processes`.

Chapter 0 writes the library's classes in small, without options. They compute the same.
"""

import ast
import json
import math
import re
from itertools import takewhile

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from book._ext.notebook_parts import DONE, sections, tags
from book._ext.toc import ROOT
from transformer_lib import Transformer, TransformerConfig

CACHE_CHAPTER = 12
CHAPTERS = {int(path.name[:2]): path for path in ROOT.glob("book/[0-9]*.ipynb")}
PRACTICE = 99  # after all chapters, so to speak
CHAPTERS[PRACTICE] = ROOT / "book/practice.ipynb"
PARTS = {  # what a reader has written by the end of a chapter
    1: "Embeddings PositionalEncoding",
    2: "scaled_dot_product_attention",
    3: "MultiHeadAttention",
    4: "padding_mask causal_mask",
    5: "LayerNorm SublayerConnection FeedForward",
    6: "EncoderLayer Encoder",
    7: "DecoderLayer Decoder",
    8: "Transformer",
    9: "pad_batch make_batch fill_batches batch_plan",
    10: "split_target label_smoothed_loss learning_rate train_step",
    11: "RecomputingDecoder Targets decode greedy_decode best_candidates "
    "BeamHypotheses advance_all beam_search SamplingConfig sample",
    12: "KeyValueCache SourceCache IncrementalDecoder",
    13: "ngrams bleu_counts bleu_from_counts draw bootstrap paired_bootstrap interval",
    14: "links_from_weights alignment_error_rate",
    15: "Pool EncoderClassifier",
    16: "convert_mask",
    17: "RMSNorm rotary_speeds rotate GatedFeedForward GroupedQueryAttention "
    "NoPositions modernize build_model replace_norms replace_feed_forward "
    "replace_attention remove_positions",
    18: "DecoderOnlyLayer LanguageModel",
    PRACTICE: "LowRank",
}
SMALL = 0  # the chapter that writes the parts of 1 to 8 without their options
UNPRINTED = {
    "Cache",
    "TransformerConfig",
    "ModernConfig",
    "sinusoid_table",
}  # of transformer_lib.model


class Plain(ast.NodeTransformer):
    """Leaves out docstrings, annotations, guards, and what is for later parts."""

    def __init__(self, cached):
        self.later = {"processes"} if cached else {"processes", "cache"}

    def is_for_later(self, node):
        return any(getattr(part, "id", None) in self.later for part in ast.walk(node))

    def generic_visit(self, node):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if ast.get_docstring(node) is not None:
                del node.body[0]
            node.returns = None
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]
        return node

    def visit_arg(self, node):
        return ast.arg(node.arg)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return node.value and ast.Assign(targets=[node.target], value=node.value)

    def visit_arguments(self, node):
        if {arg.arg for arg in node.args[-1:]} & self.later:
            node.args, node.defaults = node.args[:-1], node.defaults[:-1]
        return self.generic_visit(node)

    def visit_keyword(self, node):
        return None if self.is_for_later(node) else self.generic_visit(node)

    def visit_Expr(self, node):
        function = getattr(node.value, "func", None)
        name = getattr(function, "id", "") or getattr(function, "attr", "")
        return None if name.startswith("require_") else self.generic_visit(node)

    def visit_If(self, node):
        return None if self.is_for_later(node.test) else self.generic_visit(node)


def definitions(source, cached=True):
    """The classes and functions at the top level of a source, plain, by name."""
    kinds = ast.ClassDef | ast.FunctionDef
    found = [node for node in ast.parse(source).body if isinstance(node, kinds)]
    trees = map(Plain(cached).visit, found)
    return {tree.name: ast.unparse(ast.fix_missing_locations(tree)) for tree in trees}


def library(name, cached=True):
    module, _, own = name.rpartition(".")
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return definitions(path.read_text(encoding="utf-8"), cached).get(own)


def defining_cells(chapter):
    """(names that a cell says it defines, its source), for each that says so."""
    for cell in json.loads(CHAPTERS[chapter].read_text(encoding="utf-8"))["cells"]:
        names = cell["metadata"].get("defines", [])
        names = [names] if isinstance(names, str) else names
        if names:
            yield names, "".join(cell["source"])


@pytest.mark.parametrize("chapter", sorted(CHAPTERS.keys() - {SMALL}))
def test_what_a_chapter_defines_is_the_librarys(chapter):
    held = set()
    for names, source in defining_cells(chapter):
        own = {name.rpartition(".")[2]: name for name in names}
        expected = {
            each: library(name, chapter >= CACHE_CHAPTER) for each, name in own.items()
        }
        assert definitions(source) == expected
        held |= own.keys()
    assert held >= set(PARTS[chapter].split())


def small_model(sizes):
    """The Transformer that chapter 0 writes, and the names of its parts."""
    names, parts = set(), []
    for twins, source in defining_cells(SMALL):
        assert all(map(library, twins))
        names |= {twin.rpartition(".")[2] for twin in twins}
        kinds = ast.ClassDef | ast.FunctionDef
        parts += [node for node in ast.parse(source).body if isinstance(node, kinds)]
    found = {"F": F, "math": math, "nn": nn, "torch": torch, "PAD": 0}
    exec(compile(ast.Module(parts, []), "chapter 0", "exec"), found)
    return found["Transformer"](**sizes), names


def test_the_small_classes_of_chapter_0_compute_what_the_librarys_compute():
    torch.manual_seed(0)
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 7}
    small, names = small_model({"vocab_size": 11, "n_layers": 2, **sizes})
    for name in "src_vocab_size", "tgt_vocab_size":
        sizes[name] = 11
    for name in "n_encoder_layers", "n_decoder_layers":
        sizes[name] = 2
    whole = Transformer(TransformerConfig(norm_first=True, **sizes)).eval()
    assert names >= {type(part).__name__ for part in small.modules()} - {
        *("Linear", "Embedding", "ModuleList")
    }
    for part in small.parameters():
        nn.init.normal_(part)
    whole.load_state_dict(small.state_dict(), strict=True)

    src = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0]])
    tgt_in = torch.tensor([[1, 9, 10, 3], [1, 4, 0, 0]])
    for model in small, whole:
        model(src, tgt_in).pow(2).mean().backward()
    torch.testing.assert_close(small(src, tgt_in), whole(src, tgt_in))
    gradients = dict(whole.named_parameters())
    for name, part in small.named_parameters():
        close = {"rtol": 1e-3, "atol": 1e-4}
        torch.testing.assert_close(part.grad, gradients[name].grad, **close)


def test_the_front_page_counts_the_lines_of_chapter_0():
    """Lines that a reader writes: visible cells of the core path."""
    notebook = nbformat.read(CHAPTERS[SMALL], as_version=4)
    lines = 0
    for part in takewhile(lambda part: part.title != DONE, sections(notebook)):
        for _, cell in part.of_type("code"):
            if not {"hide-cell", "hide-input", "remove-cell"} & {*tags(cell)}:
                lines += sum(map(bool, cell.source.split("\n")))
    for page in "README.md", "book/index.ipynb":
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        [stated] = re.findall(r"in about (\d+) lines, train it", text)
        assert abs(lines - int(stated)) <= 25, lines


def test_every_class_and_function_of_the_model_is_printed():
    chapters = CHAPTERS.keys() - {SMALL}
    cells = (cell for chapter in chapters for cell in defining_cells(chapter))
    printed = {name for names, _ in cells for name in names}
    for path in ROOT.glob("transformer_lib/model/[!_]*.py"):
        for own in definitions(path.read_text(encoding="utf-8")).keys() - UNPRINTED:
            assert f"transformer_lib.model.{path.stem}.{own}" in printed


def test_the_comparison_sees_a_change_and_leaves_out_what_it_says():
    name = "transformer_lib.model.layers.DecoderLayer"
    with_cache, without = library(name), library(name, cached=False)
    assert "cache=cache" in with_cache and "cache" not in without
    assert "src_mask)" in without and '"""' not in with_cache
    plain = definitions("def f(x, y=1): return x")
    assert plain == definitions('def f(x: int, y: int = 1) -> int:\n "Doc."\n return x')
    assert plain != definitions("def f(x, y=2): return x")

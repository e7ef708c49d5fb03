"""A class or function that a chapter writes is the library's: one syntax tree.

A cell names in its metadata what it defines: `"defines": "transformer_lib.model.
attention.MultiHeadAttention"`, or a list of such names. Docstrings and annotations are
left out, calls of functions `require_…`, which refuse what makes no sense, and, in
chapters before the one about decoding step by step, the argument `cache`, keywords made
of it, and an `if` about it.
"""

import ast
import json

import pytest

from book._ext.toc import ROOT

CACHE_CHAPTER = 12
CHAPTERS = {int(path.name[:2]): path for path in ROOT.glob("book/[0-9]*.ipynb")}
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
    17: "RMSNorm rotate GatedFeedForward GroupedQueryAttention NoPositions "
    "modernize build_model replace_norms replace_feed_forward replace_attention "
    "remove_positions",
    18: "DecoderOnlyLayer LanguageModel",
}
PARTS[0] = " ".join(PARTS[chapter] for chapter in range(1, 9))
UNPRINTED = {
    "Cache",
    "TransformerConfig",
    "ModernConfig",
    "sinusoid_table",
}  # of transformer_lib.model


def mentions_cache(node):
    return any(getattr(part, "id", None) == "cache" for part in ast.walk(node))


class Plain(ast.NodeTransformer):
    """Leaves out docstrings, annotations and guards and, if told so, the cache."""

    def __init__(self, cached):
        self.cached = cached

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
        if not self.cached and [arg.arg for arg in node.args[-1:]] == ["cache"]:
            node.args, node.defaults = node.args[:-1], node.defaults[:-1]
        return self.generic_visit(node)

    def visit_keyword(self, node):
        gone = not self.cached and mentions_cache(node)
        return None if gone else self.generic_visit(node)

    def visit_Expr(self, node):
        function = getattr(node.value, "func", None)
        name = getattr(function, "id", "") or getattr(function, "attr", "")
        return None if name.startswith("require_") else self.generic_visit(node)

    def visit_If(self, node):
        gone = not self.cached and mentions_cache(node.test)
        return None if gone else self.generic_visit(node)


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


@pytest.mark.parametrize("chapter", sorted(CHAPTERS))
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


def test_every_class_and_function_of_the_model_is_printed():
    cells = (cell for chapter in CHAPTERS for cell in defining_cells(chapter))
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

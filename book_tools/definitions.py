"""The rule that a class written in a chapter is the library's class.

A cell says in its metadata which parts of the library it defines:
`"defines": "transformer_lib.model.attention.MultiHeadAttention"`, or a list of such
names. Cell and library are compared as syntax trees, after leaving out what a chapter
does without: docstrings, annotations, imports inside, calls of `check_…` functions and,
in chapters before the one about decoding step by step, the argument `cache` with what
hangs on it. Comments and line breaks are in no syntax tree.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from book_tools.notebook_parts import code_cells
from book_tools.toc import ROOT, chapter_of

CACHE = "cache"
CACHE_CHAPTER = 12  # explains the argument; chapters before it leave it out

LIBRARY = "transformer_lib"
PARTS = {  # chapter: what a reader has written by its end
    1: ["model.embeddings.Embeddings", "model.embeddings.PositionalEncoding"],
    2: ["model.attention.scaled_dot_product_attention"],
    3: ["model.attention.MultiHeadAttention"],
    4: ["model.masks.padding_mask", "model.masks.causal_mask"],
    5: [
        "model.layers.LayerNorm",
        "model.layers.SublayerConnection",
        "model.layers.FeedForward",
    ],
    6: ["model.layers.EncoderLayer", "model.transformer.Encoder"],
    7: ["model.layers.DecoderLayer", "model.transformer.Decoder"],
    8: ["model.transformer.Transformer"],
}
PARTS[0] = [part for parts in PARTS.values() for part in parts]
PARTS |= {
    9: [
        "data.batches.pad_batch",
        "data.batches.make_batch",
        "data.batches.fill_batches",
        "data.batches.batch_plan",
    ],
    10: [
        "training.loss.split_target",
        "training.loss.label_smoothed_loss",
        "training.schedule.learning_rate",
        "training.loop.train_step",
    ],
    11: [
        "generation.incremental.RecomputingDecoder",
        "generation.greedy.Targets",
        "generation.greedy.decode",
        "generation.greedy.greedy_decode",
        "generation.beam_search.best_candidates",
        "generation.beam_search.BeamHypotheses",
        "generation.beam_search.advance_all",
        "generation.beam_search.beam_search",
        "generation.sampling.SamplingConfig",
        "generation.sampling.sample",
    ],
    12: [
        "generation.incremental.KeyValueCache",
        "generation.incremental.SourceCache",
        "generation.incremental.IncrementalDecoder",
    ],
    13: [
        "evaluation.resampling.ngrams",
        "evaluation.resampling.bleu_counts",
        "evaluation.resampling.bleu_from_counts",
        "evaluation.resampling.draw",
        "evaluation.resampling.bootstrap",
        "evaluation.resampling.paired_bootstrap",
        "evaluation.resampling.interval",
    ],
    14: [
        "evaluation.alignment.links_from_weights",
        "evaluation.alignment.alignment_error_rate",
    ],
    15: ["model.classifier.Pool", "model.classifier.EncoderClassifier"],
    16: ["convert.masks.convert_mask"],
}

Definition = ast.ClassDef | ast.FunctionDef


# --- what a cell claims, and what it holds --------------------------------------------


def claims(cell: NotebookNode) -> list[str]:
    """The dotted names that a cell says it defines."""
    named = cell.metadata.get("defines", [])
    return [named] if isinstance(named, str) else list(named)


def definitions(source: str) -> dict[str, Definition]:
    """The classes and functions at the top level of a source, by name."""
    body = ast.parse(source).body
    return {node.name: node for node in body if isinstance(node, Definition)}


def changed_elsewhere(source: str) -> Counter[str]:
    """How often each name is bound or changed at the top level, definitions included.

    `Encoder = Other` counts, and so does `Encoder.forward = other`.
    """
    found = Counter[str]()
    for node in ast.parse(source).body:
        if isinstance(node, Definition):
            found[node.name] += 1
            continue
        for part in ast.walk(node):
            if isinstance(part, Definition):
                found[part.name] += 1
            if isinstance(part, ast.alias):
                found[part.asname or part.name] += 1
            if not isinstance(getattr(part, "ctx", None), ast.Store | ast.Del):
                continue
            while isinstance(part, ast.Attribute | ast.Subscript):
                part = part.value
            if isinstance(part, ast.Name):
                found[part.id] += 1
    return found


@lru_cache(maxsize=128)
def library_definition(name: str, root: Path = ROOT) -> Definition | None:
    """The definition in the library's source that a dotted name stands for."""
    module, _, own = name.rpartition(".")
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    if not module or not path.is_file():
        return None
    return definitions(path.read_text(encoding="utf-8")).get(own)


# --- what a chapter leaves out --------------------------------------------------------


class _Plain(ast.NodeTransformer):
    """Leaves out docstrings, annotations, imports and checks of the input."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("annotation", "returns", "type_comment"):
            if getattr(node, field, None) is not None:
                setattr(node, field, None)
        if hasattr(node, "type_params"):
            node.type_params = []
        _fill(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            return None
        return ast.Assign(targets=[node.target], value=node.value)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        match node.value:
            case ast.Constant(value=str()):
                return None
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name.startswith("check_"):
                    return None
        return self.generic_visit(node)

    def visit_Import(self, node: ast.AST) -> None:
        return None

    visit_ImportFrom = visit_Import


def _fill(node: ast.AST) -> None:
    """Give a block that lost all its statements the one that does nothing."""
    if isinstance(node, ast.stmt) and getattr(node, "body", None) == []:
        node.body = [ast.Pass()]


class _Uncached(ast.NodeTransformer):
    """Leaves out the argument `cache` of a function, and what hangs on it."""

    def __init__(self) -> None:
        self.gone: list[set[str]] = [
            {CACHE}
        ]  # names that hold it, function by function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        _drop_argument(node.args)
        self.gone.append(self.gone[-1] | _names_that_hold_it(node))
        self.generic_visit(node)
        self.gone.pop()
        _fill(node)
        return node

    def visit_If(self, node: ast.If) -> Any:
        kept: list[ast.stmt]
        match node.test:
            case ast.Compare(
                left=ast.Name(id="cache"),
                ops=[ast.Is() | ast.IsNot() as kind],
                comparators=[ast.Constant(value=None)],
            ):
                kept = node.body if isinstance(kind, ast.Is) else node.orelse
            case ast.Name(id="cache"):
                kept = node.orelse
            case _:
                self.generic_visit(node)
                _fill(node)
                return node
        visited = [self.visit(statement) for statement in kept]
        return [statement for statement in visited if statement is not None]

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        match node.targets:
            case [ast.Name(id=name)] if name in self.gone[-1]:
                return None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.keywords = [
            word
            for word in node.keywords
            if word.arg != CACHE and not self._is_gone(word.value)
        ]
        while node.args and self._is_gone(node.args[-1]):
            node.args.pop()
        return node

    def _is_gone(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.gone[-1]


def _drop_argument(arguments: ast.arguments) -> None:
    for at, argument in enumerate(arguments.args):
        if argument.arg == CACHE:
            # The defaults are those of the last arguments.
            default = at - len(arguments.args) + len(arguments.defaults)
            del arguments.args[at]
            if default >= 0:
                del arguments.defaults[default]
            break
    for at, argument in enumerate(arguments.kwonlyargs):
        if argument.arg == CACHE:
            del arguments.kwonlyargs[at], arguments.kw_defaults[at]
            break


def _names_that_hold_it(function: ast.FunctionDef) -> set[str]:
    """Local names that are given nothing but what is made of the cache."""
    made, other = set(), {part.arg for part in ast.walk(function.args)
                          if isinstance(part, ast.arg)}  # fmt: skip
    known = set()  # the targets of assignments that have been seen
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                names = {part.id for part in ast.walk(value) if hasattr(part, "id")}
                (made if CACHE in names else other).add(name)
                known.add(target)
            case ast.Name(id=name, ctx=ast.Store()) if node not in known:
                other.add(name)
    return made - other


def plain(definition: Definition, cached: bool = True) -> Definition:
    """What a chapter has to hold of a definition.

    Args:
        definition: a class or function; it is not changed.
        cached: whether the argument `cache` stays.
    """
    tree = copy.deepcopy(definition)
    if not cached:
        tree = _Uncached().visit(tree)
    return ast.fix_missing_locations(_Plain().visit(tree))


def difference(cell: Definition, library: Definition, cached: bool = True) -> str:
    """The lines that differ between a chapter's definition and the library's, or "".

    Args:
        cell: as the chapter writes it. A cache in it stays: before it is explained,
            there is to be none.
        library: as the library writes it.
        cached: whether the chapter has the argument `cache`.
    """
    ours, theirs = plain(cell), plain(library, cached)
    if ast.dump(ours) == ast.dump(theirs):
        return ""
    lines = difflib.unified_diff(
        *(ast.unparse(tree).splitlines() for tree in (theirs, ours)),
        *("the library", "this cell"),
        lineterm="",
        n=2,
    )
    return "\n".join(lines)


# --- the rules ------------------------------------------------------------------------


def defined(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A class that a cell defines is the library's, and the cell defines no other."""
    number = chapter_of(path)
    cached = number is None or number >= CACHE_CHAPTER
    for index, cell in code_cells(notebook):
        if names := claims(cell):
            for message in _faults(cell.source, names, cached):
                yield f"cell {index}: {message}"


def _faults(source: str, names: Sequence[str], cached: bool) -> Iterator[str]:
    try:
        found, bound = definitions(source), changed_elsewhere(source)
    except SyntaxError as error:
        yield f"cannot be compared with the library: {error}"
        return
    claimed = {name.rpartition(".")[2]: name for name in names}
    for own in sorted(found.keys() - claimed.keys()):
        yield f"defines {own}, but its metadata 'defines' does not say so"
    for own, name in claimed.items():
        library = library_definition(name)
        if library is None:
            yield f"'defines' names {name}, but the library defines no such thing"
        elif own not in found:
            yield f"'defines' names {name}, but the cell does not define {own}"
        elif bound[own] > 1:
            yield f"{own} is defined or changed again in its own cell"
        elif lines := difference(found[own], library, cached):
            yield f"{own} is not the library's:\n{lines}"


def complete(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A chapter defines in its cells what its reader is to own."""
    held = {name for _, cell in code_cells(notebook) for name in claims(cell)}
    for part in PARTS.get(chapter_of(path), []):
        if f"{LIBRARY}.{part}" not in held:
            yield f"no cell with the metadata 'defines': '{LIBRARY}.{part}'"


FILE_RULES = [defined, complete]

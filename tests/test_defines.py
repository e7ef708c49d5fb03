"""A class that a chapter writes is the library's: what counts as the same.

The rule reads every notebook in `test_book.py`; here it is shown cells.
"""

import ast
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book_tools.definitions import (
    LIBRARY,
    PARTS,
    complete,
    defined,
    library_definition,
    plain,
)

# --- the library's code as a chapter writes it ----------------------------------------

CELLS = {
    "model.attention.scaled_dot_product_attention": '''
def scaled_dot_product_attention(
    query, key, value, mask=None, dropout=0.0
):
    """A docstring is welcome, but not compared."""
    # (..., q_len, k_len)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    if dropout:
        return F.dropout(weights, dropout) @ value, weights
    return weights @ value, weights
''',
    "model.attention.MultiHeadAttention": """
class MultiHeadAttention(nn.Module):
    def __init__(
        self, d_model, n_heads, d_inputs=None, bias=True, dropout=0.0
    ):
        super().__init__()
        self.d_model, self.n_heads = d_model, n_heads
        self.d_head = d_model // n_heads
        self.d_inputs = d_inputs or (d_model, d_model, d_model)
        self.dropout = dropout
        d_query, d_key, d_value = self.d_inputs
        self.q_proj = nn.Linear(d_query, d_model, bias=bias)
        self.k_proj = nn.Linear(d_key, d_model, bias=bias)
        self.v_proj = nn.Linear(d_value, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model)
        self.kernel = fused_attention

    def forward(self, query, key, value, mask=None):
        q = self.split_heads(self.q_proj(query))
        k = self.split_heads(self.k_proj(key))
        v = self.split_heads(self.v_proj(value))
        dropout = self.dropout if self.training else 0.0
        output = self.kernel(q, k, v, mask, dropout)
        return self.out_proj(self.join_heads(output))

    def split_heads(self, x):
        # (batch, length, d_model) -> (batch, n_heads, length, d_head)
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def join_heads(self, x):
        return x.transpose(1, 2).flatten(-2)
""",
    "model.masks.padding_mask": """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]
""",
    "model.layers.FeedForward": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu", dropout=0.0):
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.contract(self.dropout(self.activation(self.expand(x))))
""",
    "model.layers.DecoderLayer": """
class DecoderLayer(nn.Module):
    def __init__(self, self_attn, cross_attn, feed_forward,
                 dropout=0.1, norm_first=False, eps=1e-5):
        super().__init__()
        self.self_attn = self_attn
        self.cross_attn = cross_attn
        self.feed_forward = feed_forward
        options = (self_attn.d_model, dropout, norm_first, eps)
        self.self_attn_connection = SublayerConnection(*options)
        self.cross_attn_connection = SublayerConnection(*options)
        self.feed_forward_connection = SublayerConnection(*options)

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        def look_back(x):
            return self.self_attn(x, x, x, tgt_mask)

        def look_across(x):
            return self.cross_attn(x, memory, memory, src_mask)

        x = self.self_attn_connection(x, look_back)
        x = self.cross_attn_connection(x, look_across)
        return self.feed_forward_connection(x, self.feed_forward)
""",
    "model.transformer.Decoder": """
class Decoder(nn.Module):
    def __init__(self, layers, norm=None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        for layer in self.layers:
            x = layer(x, memory, src_mask, tgt_mask)
        return x if self.norm is None else self.norm(x)
""",
    "model.transformer.Transformer": """
class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.encoder = build_encoder(config)
        self.decoder = build_decoder(config)
        self.lm_head = nn.Linear(
            config.d_model, config.tgt_vocab_size, bias=config.head_bias
        )
        initialize(self)
        self.src_embeddings = build_embeddings(config, config.src_vocab_size)
        self.tgt_embeddings = build_embeddings(config, config.tgt_vocab_size)
        if config.tie_embeddings != "none":
            self.lm_head.weight = self.tgt_embeddings.tokens.weight
        if config.tie_embeddings == "all":
            self.src_embeddings.tokens.weight = self.tgt_embeddings.tokens.weight

    def forward(self, src, tgt_in):
        src_mask = padding_mask(src, self.config.pad_id)
        tgt_mask = padding_mask(tgt_in, self.config.pad_id)
        tgt_mask[..., 0] = True
        tgt_mask = tgt_mask & causal_mask(tgt_in.size(1), tgt_in.device)
        memory = self.encode(src, src_mask)
        return self.lm_head(self.decode(tgt_in, memory, src_mask, tgt_mask))

    def encode(self, src, src_mask=None):
        return self.encoder(self.src_embeddings(src), src_mask)

    def decode(self, tgt_in, memory, src_mask=None, tgt_mask=None):
        x = self.tgt_embeddings(tgt_in)
        return self.decoder(x, memory, src_mask, tgt_mask)
""",
}
HEADS, MASK = "model.attention.MultiHeadAttention", "model.masks.padding_mask"
CHAPTER, CACHE_CHAPTER = Path("03_heads.ipynb"), Path("12_cache.ipynb")


def messages(source, *parts, path=CHAPTER):
    """What the rule says about a cell that claims to define these parts."""
    names = [f"{LIBRARY}.{part}" for part in parts]
    cell = new_code_cell(source, metadata={"defines": names})
    return list(defined(new_notebook(cells=[cell]), path))


@pytest.mark.parametrize("part", CELLS)
def test_the_librarys_code_stripped_by_hand_is_the_same(part):
    assert messages(CELLS[part], part) == []


@pytest.mark.parametrize("part", PARTS[0])
def test_the_librarys_own_code_is_the_same_where_the_cache_is_known(part):
    source = ast.unparse(library_definition(f"{LIBRARY}.{part}"))
    assert messages(source, part, path=CACHE_CHAPTER) == []
    found = messages(source, part)
    assert bool(found) == ("cache" in source), "no cache before its chapter"


@pytest.mark.parametrize("part", PARTS[0])
def test_what_a_chapter_shows_has_no_check_and_no_cache(part):
    shown = ast.unparse(plain(library_definition(f"{LIBRARY}.{part}"), cached=False))
    assert not any(word in shown for word in ("check_", "cache", '"""', "Tensor"))


def test_a_chapter_after_the_cache_has_the_cache():
    [message] = messages(CELLS[HEADS], HEADS, path=CACHE_CHAPTER)
    assert "\n-            k, v = cache.update(self, k, v)\n" in message


CHANGES = [  # part, what is replaced, by what
    # a default
    (HEADS, "bias=True", "bias=False"),
    (HEADS, "dropout=0.0\n    ):", "dropout=0.1\n    ):"),
    (HEADS, "mask=None", "mask"),
    ("model.layers.DecoderLayer", "eps=1e-5", "eps=1e-6"),
    ("model.layers.FeedForward", '"relu"', '"gelu"'),
    # lines that are swapped, missing, or too many
    (
        HEADS,
        "        self.q_proj = nn.Linear(d_query, d_model, bias=bias)\n"
        "        self.k_proj = nn.Linear(d_key, d_model, bias=bias)\n",
        "        self.k_proj = nn.Linear(d_key, d_model, bias=bias)\n"
        "        self.q_proj = nn.Linear(d_query, d_model, bias=bias)\n",
    ),
    (HEADS, "        self.dropout = dropout\n", ""),
    (HEADS, "        super().__init__()\n", ""),
    ("model.transformer.Transformer", "        initialize(self)\n", ""),
    ("model.transformer.Transformer", "        tgt_mask[..., 0] = True\n", ""),
    (HEADS, "        output =", "        print(q)\n        output ="),
    # other names
    (HEADS, "def forward(self, query, key", "def forward(self, key, query"),
    (HEADS, "d_inputs", "sizes"),
    (HEADS, "split_heads", "split"),
    (HEADS, "k_proj(key)", "k_proj(value)"),
    (HEADS, "nn.Module", "Module"),
    (HEADS, "def join_heads", "@staticmethod\n    def join_heads"),
    # another computation
    (HEADS, "d_model // n_heads", "d_model / n_heads"),
    (HEADS, "transpose(1, 2)", "transpose(2, 1)"),
    (HEADS, "if self.training else", "if not self.training else"),
    (MASK, "!=", "=="),
    (MASK, "None, None, :", "None, :, None"),
    ("model.attention.scaled_dot_product_attention", "~mask, 0.0", "mask, 0.0"),
    ("model.attention.scaled_dot_product_attention", "math.sqrt", "torch.sqrt"),
    (
        "model.layers.DecoderLayer",
        "x, memory, memory, src_mask",
        "x, memory, x, src_mask",
    ),
    ("model.layers.DecoderLayer", "look_across)", "look_back)"),
    ("model.transformer.Transformer", "tgt_mask & causal", "tgt_mask | causal"),
    ("model.transformer.Transformer", '!= "none"', '== "all"'),
    # arguments that hang on the cache, and others beside them
    (
        "model.transformer.Transformer",
        "embeddings(tgt_in)",
        "embeddings(tgt_in, positions)",
    ),
    ("model.transformer.Decoder", "tgt_mask)\n        return", ")\n        return"),
    ("model.transformer.Decoder", "tgt_mask=None", "tgt_mask=None, cache=None"),
]


@pytest.mark.parametrize(("part", "old", "new"), CHANGES)
def test_a_change_is_seen_and_shown(part, old, new):
    assert old in CELLS[part]
    [message] = messages(CELLS[part].replace(old, new), part)
    first, *lines = message.splitlines()
    assert first == f"cell 0: {part.rpartition('.')[2]} is not the library's:"
    assert lines[:2] == ["--- the library", "+++ this cell"]
    assert any(line[0] in "-+" for line in lines[3:])


def test_the_message_shows_both_lines():
    old, new = "d_model, bias=bias", "d_model, bias=True"
    [message] = messages(CELLS[HEADS].replace(old, new, 1), HEADS)
    indent = " " * 8
    assert f"\n-{indent}self.q_proj = nn.Linear(d_query, d_model, bias=bias)" in message
    assert f"\n+{indent}self.q_proj = nn.Linear(d_query, d_model, bias=True)" in message
    assert "split_heads" not in message.partition("q_proj")[0]


SAME = [  # what is no change
    ("pad_id):", "pad_id):\n    # shapes"),
    ("(ids, pad_id)", "(ids: Tensor, pad_id: int) -> Tensor"),
    ("(ids, pad_id):", '(ids, pad_id):\n    "Where may a query look?"'),
    ("(ids, pad_id):", "(ids, pad_id):\n    check_sequences(ids)"),
    ("(ids, pad_id):", "(ids, pad_id):\n    import math"),
    ("(ids, pad_id):", "(ids, pad_id):\n    real: Tensor"),
    (":]\n", ":]\n\n\nprint(padding_mask(torch.zeros(1, 2), 0))\n"),
    ("def", "import math\n\nfrom torch import Tensor\n\nids = 3\n\n\ndef"),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_what_is_left_out_on_both_sides(old, new):
    assert messages(CELLS[MASK].replace(old, new, 1), MASK) == []


OTHERS = [  # a cell, what it claims, what the rule says
    (CELLS[MASK] * 2, [MASK], "padding_mask is defined or changed again"),
    (f"{CELLS[MASK]}\npadding_mask = max", [MASK], "defined or changed again"),
    (f"{CELLS[MASK]}\npadding_mask.cache = 1", [MASK], "defined or changed again"),
    (f"{CELLS[MASK]}\nfrom a import padding_mask", [MASK], "defined or changed again"),
    (f"{CELLS[MASK]}\nfor padding_mask in x: pass", [MASK], "defined or changed again"),
    (f"{CELLS[MASK]}\ndef helper(): pass", [MASK], "defines helper, but its metadata"),
    (CELLS[MASK], [MASK, HEADS], "does not define MultiHeadAttention"),
    ("if x:" + CELLS[MASK].replace("\n", "\n  "), [MASK], "does not define padding_m"),
    (CELLS[MASK], ["model.masks.other_mask"], "the library defines no such thing"),
    (CELLS[MASK], ["other.padding_mask"], "the library defines no such thing"),
    ("def padding_mask(", [MASK], "cannot be compared with the library"),
]


@pytest.mark.parametrize(("source", "claimed", "message"), OTHERS)
def test_a_cell_defines_what_it_claims_and_nothing_else(source, claimed, message):
    found = messages(source, *claimed)
    assert any(message in line for line in found), found


def test_one_cell_may_define_several():
    both = CELLS[MASK] + CELLS["model.layers.FeedForward"]
    assert messages(both, MASK, "model.layers.FeedForward") == []
    assert (
        len(messages(both.replace("!=", "=="), MASK, "model.layers.FeedForward")) == 1
    )


def test_the_names_may_be_one_string():
    cell = new_code_cell("x = 1", metadata={"defines": f"{LIBRARY}.{MASK}"})
    [message] = defined(new_notebook(cells=[cell]), CHAPTER)
    assert "does not define padding_mask" in message


def test_a_chapter_has_its_classes():
    def missing(name, *cells):
        return list(complete(new_notebook(cells=cells), Path(name)))

    held = new_code_cell("", metadata={"defines": f"{LIBRARY}.model.masks.causal_mask"})
    [message] = missing("04_masks.ipynb", held)
    assert f"'defines': '{LIBRARY}.{MASK}'" in message
    assert len(missing("04_masks.ipynb")) == 2
    assert missing("17_code.ipynb") == missing("performance.ipynb") == []
    assert len(missing("00_one_sitting.ipynb")) == len(PARTS[0]) == 14

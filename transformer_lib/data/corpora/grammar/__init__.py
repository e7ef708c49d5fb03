"""Generated sentences, English and German, with an exact answer for every one.

A small grammar with the word orders that make German a test for attention: the verb
second in a main clause, first after an "if" clause and last behind "dass", "weil" and
"wenn"; prefixes that leave their verb; perfect tense and modal verbs that close the
clause; articles and adjectives that agree in gender, case and number.

    words.py, verbs.py    the dictionary
    tree.py               what a sentence means
    english.py, german.py how each language says it
    reader.py             English back to its meaning
    sampler.py            a random meaning
    examples.py           sentences, translations, the fixed corpus
"""

from transformer_lib.data.corpora.grammar.examples import (
    Example,
    explain,
    generate,
    load_grammar,
    translate,
)

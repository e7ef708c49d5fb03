"""Generated sentences, English and German, with an exact answer for every one.

A small grammar with the word orders that make German a test for attention: the verb
second in a main clause, first after an "if" clause and last behind "dass", "weil" and
"wenn"; prefixes that leave their verb; perfect tense and modal verbs that close the
clause; articles and adjectives that agree in gender, case and number.

    dictionary.py   nouns, verbs, fixed phrases
    speech.py       what a sentence means, and how each language says it
    reader.py       English back to its meaning
    examples.py     random sentences, their translation and alignment
"""

from transformer_book.grammar.examples import Example, explain, generate

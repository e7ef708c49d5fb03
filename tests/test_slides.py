"""What a chapter's page becomes on slides."""

from bs4 import BeautifulSoup

from book._ext.slides import LONG, of_section, sentences

FIGURE = '<div class="output drawing"><svg width="{}" height="100"></svg></div>'


def cell(kind="", code="", printed=""):
    output = f'<div class="cell_output"><pre>{printed}</pre></div>' if printed else ""
    code = f'<div class="cell_input"><pre>{code}</pre></div>'
    return f'<div class="cell {kind}">{code}{output}</div>'


# element of a page: the kind of its slide, None where it gets none
SHOWN = {
    f'<div class="cell tag_hide-input">{FIGURE.format(100)}</div>': "figure-beside",
    f'<div class="cell tag_hide-input">{FIGURE.format(200)}</div>': "figure-below",
    '<div class="math"><span class="eqno">(1)</span>x</div>': "equation",
    "<ul><li>first</li></ul>": "list",
    cell(code="print(2)", printed="2"): "code",
    cell(code="a\n" * LONG + "a", printed="2\n2"): "code in-columns",
    cell("own-class", code="class A:"): "code",
    '<div class="math">y</div>': None,
    cell(code="import b"): None,
    cell("tag_hide-input", "draw()", "2"): None,
    cell("tag_hide-cell", "# @title Checks", "2"): None,
}


def slides(*elements):
    html = f"<section><h2>Title</h2>{''.join(elements)}</section>"
    return of_section(BeautifulSoup(html, "lxml").section)


def test_a_slide_shows_what_the_page_shows_and_passes_over_what_it_folds():
    for element, kind in SHOWN.items():
        [slide] = slides("<p>One. Two. Three. Four.</p>", element, "<p>Seen.</p>")
        assert slide.title == "Title" and slide.before == "<p>One. Two. Three.</p>"
        assert (slide.kind or None) == kind, element
        assert slide.after == ("<p>Seen.</p>" if kind else "")


def test_a_paragraph_between_two_cells_is_on_one_slide():
    first, second = cell(code="1", printed="1"), cell(code="2", printed="2")
    one, two = slides("<p>A.</p>", first, "<p>B. C.</p>", second, "<p>D.</p>")
    assert (one.before, one.after) == ("<p>A.</p>", "<p>B. C.</p>")
    assert (two.before, two.after) == ("", "<p>D.</p>")
    one, two = slides("<p>A.</p>", first, "<p>B. Look:</p>", "<p>C:</p>", second)
    assert (one.after, two.before) == ("<p>B.</p>", "<p>C:</p>")


def test_a_sentence_is_whole():
    texts = ["He says “A” <em>b</em>.", "She: <em>c</em>.", "“D.” Last."]
    [[first], second, third] = (
        sentences(BeautifulSoup(f"<p>{text}</p>", "lxml").p) for text in texts
    )
    assert first == texts[0]
    assert second == ["She:", "<em>c</em>."]
    assert third == ["“D.”", "Last."]


def test_a_question_comes_before_its_answer():
    asked = "<blockquote><p><strong>Before you run it.</strong> How many?</p>"
    why = "<details><summary>Why?</summary><p>So many.</p></details>"
    answer = cell("tag_hide-cell", code="count()", printed="7")
    opening, quiz, told = slides("<p>A.</p>", f"{asked}</blockquote>", answer, why)
    assert (opening.before, opening.shown) == ("<p>A.</p>", "")
    assert "How many?" in quiz.before and "Before" not in quiz.before
    assert "count()" in quiz.shown and "7" not in quiz.shown
    assert "7" in told.shown and told.after == "<p>So many.</p>"

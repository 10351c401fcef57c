"""Pages: titles are text, bodies are HTML, nothing comes from elsewhere."""

from html.parser import HTMLParser

from hccl_py.documents.kind import PAGE
from hccl_py.documents.plain_page import plain_page


def test_a_title_is_text_and_a_page_is_ours() -> None:
    page = plain_page("<b> & co", "<p>x</p>", "p { margin: 0; }")
    assert "<h1>&lt;b&gt; &amp; co</h1>" in page
    assert "<p>x</p>" in page
    assert "p { margin: 0; }" in page
    assert PAGE.mark.search(page.encode())


def test_a_page_loads_nothing() -> None:
    loaded: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            loaded.extend(value or "" for name, value in attrs if name in ("src", "href"))

    Links().feed(plain_page("title", "<p>x</p>"))
    assert loaded == []

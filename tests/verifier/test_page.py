"""Reports in notebooks."""

from dataclasses import replace
from html.parser import HTMLParser

from hccl_py.verifier import Finding, Report
from tests.verifier.broken_files import FILES


class Reader(HTMLParser):
    """Collects tags and texts, and sees that every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(report: Report) -> Reader:
    reader = Reader()
    reader.feed(report._repr_html_())
    assert not reader.open
    return reader


def test_findings_are_rows_of_a_table() -> None:
    report = FILES["WRONG_SOURCE"](True).report()
    (finding,) = report.errors
    page = read(report)
    assert page.tags.count("tr") == 1 + len(report.findings)
    assert {"error", "WRONG_SOURCE", finding.message, finding.hint} <= set(page.texts)


def test_what_data_say_is_text_and_no_markup() -> None:
    nasty = "<script>alert('&')</script>"
    finding = Finding("RACE_RW", nasty, nasty, source=nasty)
    page = read(Report(nasty, (finding,), {}, notes=(nasty,)))
    assert "script" not in page.tags
    assert page.texts.count(nasty) == 4


def test_what_is_fine_is_one_line_and_what_is_much_is_counted() -> None:
    assert "table" not in read(FILES["WRONG_SOURCE"](False).report()).tags
    (finding,) = FILES["WRONG_SOURCE"](True).report().errors
    many = Report("x", tuple(replace(finding, message=str(k)) for k in range(60)), {})
    page = read(many)
    assert page.tags.count("tr") == 51
    assert page.texts[-1] == "and 10 more"

"""A page of HTML that needs nothing else, light or dark as its reader's machine is."""

from __future__ import annotations

import html

from hccl_py.language import LANGUAGES, is_english

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #fff; --line: #d0d0d0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --line: #3a3f47; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 1.6rem 0 0; }
""".strip()


def plain_page(title: str, body: str, style: str = "") -> str:
    """Return a page with a title, which is text, and a body, which is HTML."""
    head, language = html.escape(title), LANGUAGES[not is_english()]
    return (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">\n'
        f"<title>{head}</title>\n"
        '<meta name="generator" content="hccl-py">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{_STYLE}\n{style}\n</style></head>\n<body>\n<h1>{head}</h1>\n"
        f"{body}\n</body></html>\n"
    )

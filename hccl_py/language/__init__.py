"""The language of what people read: English as the sources have it, or another by catalogues.

Sources have whole sentences in English, as f-strings, and nothing marks them. Where another
language is spoken, the places that print ask `translated` for each sentence: it finds the message
of the catalogue that the sentence was made from and fills its translation with the same values.
Documents of `--json` stay English. `scripts/messages.py` collects the messages of the sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from hccl_py.errors import ConfigError

if TYPE_CHECKING:
    from hccl_py.language.translator import Translator

__all__ = ["LANGUAGES", "VARIABLE", "is_english", "language_of", "speak", "speaking", "translated"]

LANGUAGES = ("en", "zh")

VARIABLE = "HCCL_PY_LANG"

_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The variables of the locale: the first that is set says the language."""

_TRANSLATOR: ContextVar[Translator | None] = ContextVar("translator", default=None)


def language_of(environment: Mapping[str, str]) -> str:
    """Return the language that the environment asks for; ConfigError where HCCL_PY_LANG names none
    of `LANGUAGES`. A locale of another language means English.
    """
    asked = environment.get(VARIABLE, "")
    if asked:
        found = _language(asked)
        if found not in LANGUAGES:
            raise ConfigError(
                f"{VARIABLE} {asked!r:.40} is not a language of hccl-py.",
                f"Known: {', '.join(LANGUAGES)}.",
            )
        return found
    locale = next(filter(None, (environment.get(name) for name in _LOCALE)), "")
    found = _language(locale)
    return found if found in LANGUAGES else "en"


def _language(locale: str) -> str:
    """Return the language of a locale: `zh` of `zh_CN.UTF-8`."""
    return locale.partition(".")[0].replace("-", "_").partition("_")[0].lower()


def speak(language: str) -> Token[Translator | None]:
    """Speak a language from now on; return the token that undoes it."""
    if language == "en":
        return _TRANSLATOR.set(None)
    from hccl_py.language.translator import translator_of

    return _TRANSLATOR.set(translator_of(language))


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak a language meanwhile."""
    token = speak(language)
    try:
        yield
    finally:
        _TRANSLATOR.reset(token)


def is_english() -> bool:
    """True if sentences stay as the sources have them."""
    return _TRANSLATOR.get() is None


def translated(text: str) -> str:
    """Return a sentence in the language that is spoken; as it is where no message fits it."""
    found = _TRANSLATOR.get()
    return text if found is None else found.translated(text)

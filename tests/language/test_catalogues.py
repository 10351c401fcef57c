"""Catalogues have every message of the sources, and say of each what it says."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po as babel_read_po

from hccl_py.language import LANGUAGES
from hccl_py.language.catalogue import FOLDER, pieces, read_catalogues, read_po
from hccl_py.language.translator import Translator

ROOT = Path(__file__).resolve().parents[2]
PATHS = [path for language in LANGUAGES[1:] for path in sorted((FOLDER / language).glob("*.po"))]

SAMPLES = ("17", "3.5", "2048", "64", "9")
"""Values that are no sentences."""


def test_no_message_is_missing_and_values_agree() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "messages.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SOURCE = '''
"""A docstring of a module: no message."""
def command(name, count):
    """Do the work.

    And say so.
    """
    if name == "some name of ours":
        raise KeyError("a defect of ours")
    return f"{name!r} has {count:,} part{'' if count == 1 else 's'}" + ": look again"
'''

BROKEN_PO = """
msgid "Do the work."
msgstr "做这件事。"

msgid "{name} has {count} parts: look again"
msgstr "{name} 有几部分"
"""


def test_the_check_names_what_is_missing_and_what_disagrees(tmp_path: Path) -> None:
    for folder in ("executors", "platform", "interop", "hccl_py/cli"):
        (tmp_path / folder).mkdir(parents=True)
    copy_sources(tmp_path)
    (tmp_path / "hccl_py" / "cli" / "work.py").write_text(SOURCE)
    catalogue = tmp_path / "hccl_py" / "language" / "zh" / "cli.po"
    catalogue.write_text(BROKEN_PO, "utf-8")
    script = tmp_path / "scripts" / "messages.py"
    done = run(script, "--check")
    assert done.returncode == 1
    assert "lacks 'And say so.'" in done.stderr
    assert "lacks '{name} has {count} part: look again'" in done.stderr
    assert (
        "other values in the translation of '{name} has {count} parts: look again'" in done.stderr
    )
    assert "defect" not in done.stderr
    assert "some name" not in done.stderr
    assert run(script).returncode == 0
    assert "no translation of 'And say so.'" in run(script, "--check").stderr
    assert 'msgstr "做这件事。"' in catalogue.read_text("utf-8")


def run(script: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(script), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def copy_sources(root: Path) -> None:
    """Copy the script and what it imports."""
    names = ["scripts/messages.py", "hccl_py/errors.py"]
    names += [f"hccl_py/language/{name}.py" for name in ("__init__", "catalogue")]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes((ROOT / name).read_bytes())
    (root / "hccl_py" / "__init__.py").touch()
    (root / "hccl_py" / "language" / "zh").mkdir()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_catalogue_is_read_as_babel_reads_it(path: Path) -> None:
    wanted: dict[str, str] = {}
    for message in babel_read_po(io.BytesIO(path.read_bytes())):
        said = message.string if isinstance(message.string, str) else (message.string or ("",))[0]
        ids = [message.id] if isinstance(message.id, str) else list(message.id)
        wanted |= {one: said for one in ids if one and said and not message.fuzzy}
    assert read_po(path.read_text("utf-8")) == wanted


def test_a_message_has_one_translation() -> None:
    found: dict[str, dict[str, str]] = {}
    for path in PATHS:
        for message, said in read_po(path.read_text("utf-8")).items():
            found.setdefault(message, {})[said] = path.stem
    assert {message: said for message, said in found.items() if len(said) > 1} == {}


def test_every_message_is_found_again_from_its_sentence() -> None:
    """A message with values becomes its own translation, with the same values."""
    known = read_catalogues("zh").items()
    messages = {
        m: said for m, said in known if said != m and re.search("[a-z]{3}", "".join(pieces(m)[0]))
    }
    counted = [pieces(m)[0] for m in messages if m.startswith("{count} ")]
    translator = Translator(messages)
    lost = [
        (message, translator.translated(filled(message)), filled(said, message))
        for message, said in messages.items()
        if "\n" not in message
        and (message.startswith("{count} ") or pieces(message)[0] not in counted)
        and translator.translated(filled(message)) != filled(said, message)
    ]
    assert not lost, "\n".join(map(str, lost))


def filled(text: str, message: str = "") -> str:
    """Return a message, or its translation, with numbers for its values."""
    names = list(dict.fromkeys(pieces(message or text)[1]))
    values = dict(zip(names, SAMPLES * len(names), strict=False))
    texts, places = pieces(text)
    return texts[0] + "".join(values[n] + more for n, more in zip(places, texts[1:], strict=True))


def test_wrong_words_for_terms_are_not_used() -> None:
    wrong = re.compile("栅栏|改错|缩减|流程序")
    assert [said for said in read_catalogues("zh").values() if wrong.search(said)] == []

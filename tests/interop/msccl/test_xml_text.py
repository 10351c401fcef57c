"""What is no MSCCL XML is refused in one sentence with the line, whatever it is, and at once."""

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hccl_interop.msccl import algorithms_from, import_algorithm, meaning_of, read_algorithms
from hccl_py.errors import HcclError, ProgramFileError
from tests.interop.msccl.xmls import Xml, ring_all_reduce, sums_in_scratch

GOOD = ring_all_reduce(2).text()


def refused(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(ProgramFileError) as caught:
        algorithms_from(data, "own.xml")
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith("own.xml: ")
    return caught.value.message.removeprefix("own.xml: ")


DEFECTS: dict[str, tuple[Callable[[str], str], str]] = {
    "an attribute missing": (
        lambda t: t.replace(' proto="Simple"', ""),
        "line 1: expected an attribute proto of <algo>, found none.",
    ),
    "a protocol that there is not": (
        lambda t: t.replace('"Simple"', '"LL64"'),
        "line 1: expected proto of <algo> one of Simple, LL, LL128",
    ),
    "a step that there is not": (
        lambda t: t.replace('"rrcs"', '"rrss"', 1),
        "line 5: expected type of <step> one of s, r, rcs, rrs, rrc, rrcs, cpy, re, nop, found",
    ),
    "a buffer that there is not": (
        lambda t: t.replace('srcbuf="i"', 'srcbuf="x"', 1),
        'line 4: expected srcbuf of <step> one of i, o, s, found "x".',
    ),
    "a count without end": (
        lambda t: t.replace('cnt="1"', f'cnt="{10**9}"', 1),
        'line 4: expected cnt of <step> from 0 to 32767, found "1000000000".',
    ),
    "a number of 5000 digits": (
        lambda t: t.replace('cnt="1"', f'cnt="{"9" * 5000}"', 1),
        "line 4: expected cnt of <step> from 0 to 32767",
    ),
    "ranks without end": (
        lambda t: t.replace('ngpus="2"', 'ngpus="1000000000"'),
        "line 1: expected ngpus of <algo> from 1 to 32767",
    ),
    "chunks without end": (
        lambda t: t.replace('nchunksperloop="2"', 'nchunksperloop="1000000000"'),
        "line 1: expected nchunksperloop of <algo> from 1 to 32767",
    ),
    "a GPU missing": (
        lambda t: t.replace('ngpus="2"', 'ngpus="3"'),
        "line 1: expected a <gpu> of id 2, found none.",
    ),
    "a GPU twice": (
        lambda t: Xml("allreduce", 2, 1).text().replace('<gpu id="1"', '<gpu id="0"'),
        "line 4: expected a <gpu> with an id of its own, found id 0 again.",
    ),
    "a peer that is no rank": (
        lambda t: t.replace('send="1"', 'send="7"', 1),
        'line 3: expected send of <tb> from -1 to 1, found "7".',
    ),
    "a rank as its own peer": (
        lambda t: t.replace('send="1"', 'send="0"', 1),
        "line 3: expected another rank, or -1, as a peer, found rank 0 itself.",
    ),
    "a flag that is none": (
        lambda t: t.replace('hasdep="0"', 'hasdep="2"', 1),
        'line 4: expected hasdep of <step> 0 or 1, found "2".',
    ),
    "an offset before the buffer": (
        lambda t: t.replace('srcoff="0"', 'srcoff="-1"', 1),
        'line 4: expected srcoff of <step> from 0 to 32767, found "-1".',
    ),
    "an attribute twice": (
        lambda t: t.replace('cnt="1"', 'cnt="1" cnt="1"', 1),
        "line 4: the text is no XML: duplicate attribute.",
    ),
    "a file that is cut off": (lambda t: t[:500], "the text is no XML"),
    "another file": (lambda t: "<html></html>", "expected an element <algo>, found none."),
    "nothing": (lambda t: "", "expected an element <algo>, found none."),
    "words": (lambda t: "no XML at all & more", "the text is no XML"),
    "an end that nothing begins": (lambda t: "</algorithms>" + t, "the text is no XML"),
    "a document type": (
        lambda t: '<!DOCTYPE algo [<!ENTITY a "b">]>\n' + t,
        "line 1: expected no document type, found one.",
    ),
    "a file from elsewhere": (
        lambda t: '<!DOCTYPE algo SYSTEM "file:///etc/passwd">\n' + t,
        "line 1: expected no document type, found one.",
    ),
    "an entity": (
        lambda t: t.replace('name="own"', 'name="&lol;"'),
        "line 1: the text is no XML: undefined entity.",
    ),
    "nesting without end": (
        lambda t: "<a>" * 200_000,
        "line 1: expected at most 8 levels of elements, found more.",
    ),
    "a NUL": (lambda t: t.replace("own", "o\0n"), "the text is no XML"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_said_in_a_sentence_with_its_line(name: str) -> None:
    change, message = DEFECTS[name]
    assert message in refused(change(GOOD))


def test_bytes_that_are_no_text() -> None:
    assert "line 1: expected UTF-8 text" in refused(b"<algo \xff>")
    assert "line 1: expected UTF-8 text" in refused(GOOD.encode("utf-16"))


BOMB = (
    '<!DOCTYPE a [<!ENTITY a0 "lol">'
    + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    + "]><algo name='&a11;'/>"
)


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        GOOD.replace("<gpu", BOMB + "<gpu", 1),
        "<algo " * 300_000,
        "<algo>" * 300_000,
        GOOD.replace("<tb", "<x>" * 100 + "<tb", 1),
        "\n".join([GOOD.split("\n")[0], GOOD.split("\n")[1], *[GOOD.split("\n")[2]] * 20_000]),
        GOOD.replace("<step", "<step " + " ".join(f'a{n}="1"' for n in range(100_000)), 1) + "<",
        "<!--" + "-" * 1_000_000,
    ],
    ids=[
        "bomb",
        "bomb inside",
        "tags",
        "algos",
        "unknown",
        "threadblocks",
        "attributes",
        "comment",
    ],
)
def test_hostile_texts_are_refused_at_once(text: str) -> None:
    begin = time.process_time()
    refused(text)
    assert time.process_time() - begin < 3


def test_elements_that_the_format_does_not_have_are_passed_over() -> None:
    text = GOOD.replace("<gpu", "<note><gpu id='9'/></note><gpu", 1)
    (algorithm,) = algorithms_from(text.encode(), "own.xml")
    assert [gpu.id for gpu in algorithm.gpus] == [0, 1]


def test_a_file_has_several_algorithms(tmp_path: Path) -> None:
    path = tmp_path / "two.xml"
    path.write_text('<?xml version="1.0"?>\n' + GOOD + '<?xml version="1.0"?>\n' + GOOD)
    first, second = read_algorithms(path)
    assert (first.line, second.line) == (2, 2 + GOOD.count("\n") + 1)
    assert first.gpus[1].blocks[0].steps[0].line == 12
    assert len(second.gpus) == 2


def mutant(text: str, random: random.Random) -> str:
    """Return a text with something cut, doubled, exchanged or written over."""
    for _ in range(random.randrange(1, 4)):
        a, b = sorted(random.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + random.choice([1, 3, 20, 200]))
        piece = text[a:b]
        text = random.choice(
            [
                text[:a] + text[b:],
                text[:b] + piece + text[b:],
                text[:a] + piece[::-1] + text[b:],
                text[:a]
                + random.choice(['"', "<", ">", "/", "9" * 6, "-1", "&#0;", "\n"])
                + text[b:],
            ]
        )
    return text


WORDS = [*"0123", "-1", "63", "72", "40000", *"ios", "r", "rcs", "rrcs", "nop", "Simple", "custom"]


def rewritten(text: str, random: random.Random) -> str:
    """Return a text with other values in some attributes: most are still algorithms."""
    for _ in range(random.randrange(1, 4)):
        values = list(re.finditer(r'="(\w+|-1)"', text))
        value = random.choice(values)
        text = f'{text[: value.start()]}="{random.choice(WORDS)}"{text[value.end() :]}'
    return text


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, 12))]
)
def test_mutants_are_imported_or_refused(seed: int) -> None:
    source = random.Random(seed)
    texts = [GOOD, sums_in_scratch(2).text()]
    begin = time.process_time()
    sentences = []
    for _ in range(60):
        text = source.choice([mutant, rewritten])(source.choice(texts), source)
        try:
            for algorithm in algorithms_from(text.encode(), "own.xml"):
                import_algorithm(algorithm, meaning_of(algorithm), 1 << 10).report()
        except HcclError as error:
            sentences.append(error.message)
    assert 0 < len(sentences) < 60
    assert not [sentence for sentence in sentences if "\n" in sentence]
    assert time.process_time() - begin < 60


def test_what_would_be_written_out_without_end_is_refused() -> None:
    xml = Xml("allreduce", 2, 1, proto="LL")
    for gpu in range(2):
        xml.tb(gpu, send=1 - gpu, recv=1 - gpu).step("s", ("i", 0)).step("r", dst=("o", 0))
    (algorithm,) = algorithms_from(xml.text().encode(), "own.xml")
    with pytest.raises(HcclError) as caught:
        import_algorithm(algorithm, meaning_of(algorithm), 1 << 40)
    assert "own.xml:1: 33554432 passes of the algorithm make some" in caught.value.message

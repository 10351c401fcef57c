"""Every code block of the documentation runs, or says why it does not.

A page is run from top to bottom in an empty folder, by a copy of a process that has imported what
pages need and has run nothing:

- python: all blocks of a page share one namespace, as if a reader typed them in.
- console: each "$ command" runs in bash and must exit 0, or N where it ends in "# exit N". The
  lines below a command, if there are any, are its output; "..." stands for any lines, or within a
  line for any text.
- json and toml must parse; text, mermaid and cpp are free; there is no other language.

A "cd" of its own stays in force. In a project that the page has made, pip install, pytest and so on
run like anything else; it is installed for this page only.

A comment right above a block changes what is done with it: <!-- not run: reason --> leaves it out,
<!-- file: name --> writes it into the folder instead. Commands that set up a checkout (pip install,
pytest, ...) are compared with the project, not run.
"""

import atexit
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest
from markdown_it import MarkdownIt

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PAGES = [
    *("README.md", "CONTRIBUTING.md"),
    *sorted(
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if not path.name.endswith(".zh.md")
    ),
]
REAL = {"README.md", "page.md"}
"""Pages whose commands run in processes of their own, those of hccl-py the first time that a page
has them; all other calls of hccl-py do not pay for its imports each time.
"""

WARM = (
    *(f"hccl_py.cli.{file.stem}" for file in sorted((ROOT / "hccl_py/cli").glob("[a-z]*.py"))),
    *("hccl_py.communicator", "hccl_py.simulator", "hccl_py.verifier", "hccl_py.tuning"),
    *("hccl_executors", "hccl_platform.emulated.session", "rich.table", "numpy.ma"),
    *(f"hccl_interop.{name}" for name in ("importers", "checker_logs", "chakra", "cpp.export")),
    *("hccl_interop.msccl", "hccl_interop.mscclpp"),
)
"""What commands import."""

PLAIN_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
"""What bash takes as it stands."""

FREE_TEXT = {"text", "mermaid", "cpp"}
SECONDS_PER_PAGE = 300


# ---- reading a page ----


@dataclass(frozen=True)
class Block:
    language: str
    line: int
    text: str
    note: str = ""  # "not run" or "file", from the comment above
    value: str = ""  # the reason, or the file's name


def read_blocks(page: str) -> list[Block]:
    blocks = []
    note: tuple[str, str] | None = None
    for token in MarkdownIt().parse(page):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            blocks.append(Block(token.info.strip(), line + 1, token.content, *note or ()))
            note = None
            continue
        if note:
            raise ValueError(f"line {line}: a comment {note[0]!r} belongs right above a block")
        if token.type == "code_block":
            raise ValueError(f"line {line}: an indented code block; use a fence with a language")
        if token.type == "html_block":
            note = read_note(token.content, line)
    if note:
        raise ValueError(f"the last comment {note[0]!r} belongs right above a block")
    return blocks


def read_note(comment: str, line: int) -> tuple[str, str] | None:
    if not re.match(r"<!--\s*(not run|file)\b", comment):
        return None
    if match := re.fullmatch(r"<!--\s*(not run|file):\s*(\S.*?)\s*-->\s*", comment, re.DOTALL):
        return match[1], match[2]
    raise ValueError(f"line {line}: write <!-- not run: reason --> or <!-- file: name -->")


@dataclass
class Command:
    text: str
    line: int
    status: int = 0
    output: list[str] = field(default_factory=list)


def read_commands(block: Block) -> list[Command]:
    commands: list[Command] = []
    for line, text in enumerate(block.text.splitlines(), block.line):
        if text.startswith("$ "):
            commands.append(Command(text[2:], line))
        elif not commands:
            raise ValueError(f"line {line}: a console block starts with '$ '")
        elif commands[-1].text.endswith("\\"):
            commands[-1].text = commands[-1].text[:-1] + text.removeprefix("> ").lstrip()
        else:
            commands[-1].output.append(text)
    for command in commands:
        if match := re.search(r"\s+# exit (\d+)$", command.text):
            command.text, command.status = command.text[: match.start()], int(match[1])
    return commands


# ---- running a page ----


def run_page(page: Path, namespace: dict[str, object]) -> None:
    for block in read_blocks(page.read_text("utf-8")):
        if block.note == "file":
            Path(block.value).write_text(block.text, "utf-8")
        elif block.note != "not run":
            run_block(block, page, namespace)


def run_block(block: Block, page: Path, namespace: dict[str, object]) -> None:
    if block.language == "python":
        source = "\n" * (block.line - 1) + block.text  # tracebacks name the page's own lines
        exec(compile(source, page, "exec", dont_inherit=True), namespace)
    elif block.language == "console":
        for command in read_commands(block):
            run_command(command, page)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language not in FREE_TEXT:
        raise ValueError(f"{page.name}:{block.line}: language {block.language!r} is not known here")


def run_command(command: Command, page: Path) -> None:
    where = f"{page.name}:{command.line}: $ {command.text}"
    if re.fullmatch(r"cd \S+", command.text):
        os.chdir(command.text.removeprefix("cd "))
        return
    rest = [part for part in re.split(r"\s+&&\s+", command.text) if not is_set_up(part)]
    if not rest:
        return
    line = " && ".join(rest)
    status, output = run_shell(line) if page.name in REAL and is_first(line) else run_line(rest)
    if status != command.status:
        wanted = f"exit status {status}, the page says {command.status}"
        raise AssertionError(f"{where}\n{wanted}\n{output}")
    # Loops are compiled the first time on a machine, and notes say so.
    output = re.sub(r"(?m)^note: compiling .*\n", "", output)
    if any(command.output) and (problem := difference(command.output, output)):
        raise AssertionError(f"{where}\n{problem}\nThe whole output is:\n{output}")


def is_first(line: str) -> bool:
    """Whether the page has not had this command of hccl-py yet; all other lines are first ones."""
    name = re.match(r"hccl-py \w+", line)
    if name and name[0] in SEEN:
        return False
    SEEN.update([name[0]] if name else [])
    return True


SEEN: set[str] = set()
"""The commands of hccl-py that have run."""


def run_line(parts: list[str]) -> tuple[int, str]:
    """Run a line; where it is one call of hccl-py, in a process that has imported everything."""
    words = shlex.split(parts[0], comments=True) if len(parts) == 1 else []
    if COMMANDS and words[:1] == ["hccl-py"] and not is_for_bash(parts[0]):
        COMMANDS[0].send((words[1:], os.getcwd(), dict(os.environ)))
        status, output = COMMANDS[0].recv()
        return status, output
    return run_shell(" && ".join(parts))


def is_for_bash(line: str) -> bool:
    """Whether words and quotes are not all that a line is made of."""
    return bool(re.search(r"""[|<>;&$`*~\\'"]""", PLAIN_QUOTED.sub("", line)))


def run_shell(line: str) -> tuple[int, str]:
    """Run a line in bash; return exit status and output."""
    done = subprocess.run(
        ["bash", "-c", line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


COMMANDS: list[Connection] = []
"""The process that runs the page's calls of hccl-py."""


def start_commands() -> None:
    """Fork a process that forks once per command, before anything of the page runs."""
    ours, theirs = Pipe()
    if os.fork():
        theirs.close()
        COMMANDS.append(ours)
        return
    ours.close()
    serve(theirs, call_hccl_py)


def serve(asked: Connection, work: Callable[[list[str]], int]) -> NoReturn:
    """Do some work for each question, in a copy of this process, until there are no more."""
    try:
        while True:
            asked.send(run_copy(work, *asked.recv()))
    except EOFError:
        os._exit(0)


def call_hccl_py(arguments: list[str]) -> int:
    """Run a command; what the page has installed is found first."""
    outside = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [path for path in (*outside, *sys.path) if path]
    sys.argv = ["hccl-py", *arguments]
    status: int = import_module("hccl_py.cli").main()
    return status


def run_copy(
    work: Callable[[list[str]], int], words: list[str], folder: str, environment: dict[str, str]
) -> tuple[int, str]:
    """Do some work in a child of this process; return exit status and output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        child = os.fork()
        if child == 0:
            status = 70
            try:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(environment)
                status = work(words)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, code = os.waitpid(child, 0)
        file.seek(0)
        return os.waitstatus_to_exitcode(code), file.read()


def difference(wanted: list[str], output: str) -> str:
    """What is wrong with the output, or nothing; blank lines around it do not count."""
    lines = [line.rstrip() for line in "\n".join(wanted).strip("\n").split("\n")]
    text = "".join(line.rstrip() + "\n" for line in output.strip("\n").split("\n"))
    if re.fullmatch(pattern(lines), text):
        return ""
    for count, line in enumerate(lines, 1):
        if not re.fullmatch(pattern([*lines[:count], "..."]), text):
            return f"line {count} of what the page shows is not there: {line}"
    return "the output goes on after what the page shows (write ... for lines left out)"


def pattern(lines: list[str]) -> str:
    def one(line: str) -> str:
        return ".*".join(re.escape(piece) for piece in line.split("...")) + r"\n"

    return "".join(r"(?:.*\n)*?" if line.strip() == "..." else one(line) for line in lines)


# ---- commands that set up a checkout: compared with the project, not run ----


def is_set_up(part: str) -> bool:
    """Whether this is such a command; raises where the project does not have what it names."""
    if Path("pyproject.toml").exists():
        return part.startswith("pip install -e ") and install_page_s_project()
    command = re.sub(r"^(?:[A-Z_]+=\S*\s+)+", "", part)
    for start, check in SET_UP.items():
        if command == start or command.startswith(start + " "):
            check(start, shlex.split(command.removeprefix(start), comments=True))
            return True
    return False


def check_pip_install(_: str, words: list[str]) -> None:
    extras = CONFIGURATION["project"]["optional-dependencies"]
    for word in words:
        match = re.fullmatch(r"(?:\.|hccl-py)(?:\[([\w,-]+)\])?", word)
        if not match and not word.startswith("-"):
            raise ValueError(f"pip install {word}: not this project; say <!-- not run: ... -->")
        if match and match[1] and (unknown := set(match[1].split(",")) - set(extras)):
            raise ValueError(f"pip install {word}: no extra {sorted(unknown)}, only {list(extras)}")


def check_git_clone(_: str, words: list[str]) -> None:
    folder = words[-1].rsplit("/", 1)[-1].removesuffix(".git")
    if folder != CONFIGURATION["project"]["name"]:
        raise ValueError(f"git clone {shlex.join(words)}: makes no folder hccl-py")
    Path(folder).mkdir()  # a later cd finds it


def check_pytest(_: str, words: list[str]) -> None:
    options = CONFIGURATION["tool"]["pytest"]["ini_options"]
    markers = {line.partition(":")[0] for line in options["markers"]} | {"and", "or", "not"}
    for before, word in zip(["", *words], words, strict=False):
        if before == "-m" and (unknown := set(re.findall(r"\w+", word)) - markers):
            raise ValueError(f"pytest -m {word!r}: no marker {sorted(unknown)}")
        if before in {"-m", "-k", "-n"} or word.startswith("-"):
            continue
        if not (ROOT / word.partition("::")[0]).exists():
            raise ValueError(f"pytest {word}: no such file")


def check_script(script: str, words: list[str]) -> None:
    text = (ROOT / script).read_text("utf-8")
    if unknown := [word for word in words if word not in text]:
        raise ValueError(f"{script} has no option {unknown}")


def check_environment(start: str, words: list[str]) -> None:
    if (start, words) not in [("python -m venv", [".venv"]), (".", [".venv/bin/activate"])]:
        raise ValueError(f"{start} {shlex.join(words)}: the environment's folder is .venv")


def install_page_s_project() -> bool:
    """Install the current folder into one of the page's own; the code is taken from here, which
    comes first on the path, as `pip install -e` would have it.
    """
    site = os.environ["PAGE_SITE"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-index", "--no-build-isolation", "--target", site, "."]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    paths = [os.getcwd(), *os.environ.get("PYTHONPATH", site).split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    sys.path[1:1] = {site} - set(sys.path)  # "", the current folder, stays first
    return True


SET_UP: dict[str, Callable[[str, list[str]], None]] = {
    "pip install": check_pip_install,
    "git clone": check_git_clone,
    "python -m venv": check_environment,
    ".": check_environment,
    "pytest": check_pytest,
    "scripts/check": check_script,
    ".ci/run": check_script,
}


# ---- the tests ----


@pytest.fixture(scope="module")
def pages() -> Iterator[Connection]:
    """A process that pages are copies of: it has imported what they need, and runs nothing."""
    ours, theirs = Pipe()
    command = [sys.executable, __file__, str(theirs.fileno())]
    with subprocess.Popen(command, env=outside_of_pages(), pass_fds=[theirs.fileno()]), ours:
        theirs.close()
        yield ours


def outside_of_pages() -> dict[str, str]:
    """Surroundings in which a page finds hccl-py, and no settings from outside."""
    outside = ("HCCL", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(outside)}
    environment["PATH"] = sysconfig.get_path("scripts") + os.pathsep + environment["PATH"]
    environment |= {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"}
    # A reader's pytest has few plugins; what is installed beside ours here takes long to import.
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    environment["PYTEST_PLUGINS"] = "hccl_py.testing.pytest_plugin"
    environment["CI"] = "true"  # hypothesis: the same examples always, however slow the machine
    return environment


def run_apart(pages: Connection, page: Path, folder: Path) -> tuple[int, str]:
    """Run a page in a process of its own; return exit status and output."""
    environment = outside_of_pages() | {"PAGE_SITE": str(folder / ".site")}
    pages.send(([str(page)], str(folder), environment))
    status, output = pages.recv()
    return status, output


def run_page_alone(words: list[str]) -> int:
    """Run a page as the main module of this process, which nothing else uses."""
    signal.alarm(SECONDS_PER_PAGE)
    page = Path(words[0])
    if "$ hccl-py " in page.read_text("utf-8"):
        start_commands()
    sys.path[0] = ""
    sys.modules["__main__"] = ModuleType("__main__")
    run_page(page, vars(sys.modules["__main__"]))
    atexit._run_exitfuncs()  # as where an interpreter ends
    return 0


@pytest.mark.pages
@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, pages: Connection, tmp_path: Path) -> None:
    status, output = run_apart(pages, ROOT / page, tmp_path)
    assert status == 0, output


GOOD_PAGE = """
# A page

```python
first = 1
```

<!-- file: greeting.txt -->
```text
hello
world
```

```console
$ cat greeting.txt && \\
> echo "$HCCL_ALGO"
hello
...
$ echo took 12.5 us; echo to stderr >&2
took ... us
to stderr
$ exit 3  # exit 3
$ pip install -e ".[test]" && ls
greeting.txt
```

- In a list:

  ```python
  assert first == 1
  assert open("greeting.txt").read() == "hello\\nworld\\n"
  ```

<!-- not run: it needs a card -->
```python
import nowhere
```

```json
{"sizes": [1, 2]}
```
"""


def test_good_page(pages: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCCL_ALGO", "level0:NA")
    page = tmp_path / "page.md"
    page.write_text(GOOD_PAGE, "utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    status, output = run_apart(pages, page, folder)
    assert status == 0, output


def test_blocks_of_good_page() -> None:
    blocks = read_blocks(GOOD_PAGE)
    languages = ["python", "text", "console", "python", "python", "json"]
    assert [block.language for block in blocks] == languages
    assert (blocks[0].line, blocks[0].text) == (5, "first = 1\n")
    assert (blocks[1].note, blocks[1].value) == ("file", "greeting.txt")
    assert (blocks[4].note, blocks[4].value) == ("not run", "it needs a card")


BAD_PAGES = {
    "```console\n$ echo 1; echo 3\n1\n2\n```": "line 2 of what the page shows is not there: 2",
    "```console\n$ echo 1; echo 2\n1\n```": "the output goes on",
    "```console\n$ echo 1 2\n1 ... 3\n```": "is not there: 1 ... 3",
    "```console\n$ exit 1\n```": "exit status 1, the page says 0",
    "```console\n$ true  # exit 2\n```": "exit status 0, the page says 2",
    "```console\necho\n```": "line 2: a console block starts with",
    '```console\n$ pip install -e ".[nothing]"\n```': "no extra ",
    "```console\n$ pip install something\n```": "not this project",
    "```console\n$ git clone https://example.org/other.git\n```": "makes no folder hccl-py",
    "```console\n$ pytest tests/test_nothing.py\n```": "no such file",
    "```console\n$ PROFILE=x pytest -m slow\n```": "no marker ",
    "```console\n$ scripts/check --quick\n```": "has no option ",
    "```console\n$ python -m venv elsewhere\n```": "folder is .venv",
    "```python\nassert 1 == 2, 'wrong sum'\n```": "wrong sum",
    "```json\n{]\n```": "Expecting property name",
    "```toml\nx =\n```": "Invalid value",
    "```sh\ntrue\n```": "page.md:2: language 'sh' is not known",
    "```\ntrue\n```": "language '' is not known",
    "text\n\n    indented = 1\n": "line 3: an indented code block",
    "<!-- not run -->\n```python\n```": "line 1: write <!-- not run: reason -->",
    "<!-- not run: because -->\ntext\n\n```python\n```": "line 2: a comment 'not run' belongs",
    "<!-- file: x.json -->": "the last comment 'file' belongs",
}


@pytest.mark.parametrize(("text", "message"), BAD_PAGES.items())
def test_bad_page(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Path("page.md")
    page.write_text(text, "utf-8")
    with pytest.raises((AssertionError, ValueError), match=re.escape(message)):
        run_page(page, {})


if __name__ == "__main__":  # the process of the fixture `pages`
    for module in WARM:
        import_module(module)
    program = sys.modules["__main__"]  # keeps this module's globals alive
    serve(Connection(int(sys.argv[1])), run_page_alone)

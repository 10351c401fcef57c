"""HCCL's own algorithm code as the judge of what is recorded here.

python scripts/oracle build leg HCOMM_GIT WORK           make the driver of the classic algorithms
python scripts/oracle build pub HCCL_GIT HCOMM_GIT WORK  make the driver of the Ascend 950's
python scripts/oracle build ccu HCCL_GIT HCOMM_GIT WORK  make a folder of its CCU kernels to check
python scripts/oracle kernels FOLDER FILE                verdicts on HCCL's CCU kernels
python scripts/oracle ask WORDS...                       the tasks of HCCL in a case
python scripts/oracle compare WORDS...                   the first different task of every stream
python scripts/oracle compare --cases FILE               verdicts on many cases, counted by cause
python scripts/oracle renew FILE --source COMMIT         golden runs of all calls of drawing.py
python scripts/oracle judge FILE... DIFFERENT            which calls differ, and what others prove
python scripts/oracle select --number 2000 --seed 1      drawn selections of the Ascend 950
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
warnings.simplefilter("ignore")

from hccl_py.plugins.fidelity import Proof  # noqa: E402
from scripts.oracle.asking import ON_THREADS, Answer, answer_of, ask, driver_of  # noqa: E402
from scripts.oracle.building import build_leg, build_pub  # noqa: E402
from scripts.oracle.calls import Case, case_of, words_of  # noqa: E402
from scripts.oracle.ccu_folder import make_ccu_folder  # noqa: E402
from scripts.oracle.comparing import Verdict, compare, first_differences  # noqa: E402
from scripts.oracle.drawing import PARTS, PARTS_950  # noqa: E402
from scripts.oracle.golden import (  # noqa: E402
    MOST_TASKS,
    kept_lines,
    read_golden,
    task_count,
    write_golden,
)
from scripts.oracle.judging import differences, judge_all, proofs_of  # noqa: E402
from scripts.oracle.selecting import (  # noqa: E402
    ask_selections,
    choice_of,
    drawn_cases,
    names_of,
    write_selections,
)

PROOFS = Path(__file__).resolve().parents[2] / "executors" / "hccl_executors" / "run_proofs.json"


def main() -> None:
    """Run a command."""
    options = _parser().parse_args()
    options.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("scripts/oracle", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, function in (("ask", _ask), ("compare", _compare)):
        one = commands.add_parser(name)
        one.add_argument("words", nargs="*")
        one.add_argument("--driver")
        one.add_argument("--ranks", type=int, default=1, help="ranks shown, 1 by default")
        one.add_argument("--local", action="store_true", help="copies inside a rank, too")
        one.add_argument("--cases", type=Path, help="cases, one JSON object a line, perhaps .gz")
        one.add_argument("--answers", type=Path, help="answers of a driver instead of asking it")
        one.add_argument("--every", type=int, default=1, help="take every n-th case")
        one.add_argument("--all", action="store_true", help="calls that are not same, too")
        one.set_defaults(run=function)
    build = commands.add_parser("build")
    build.add_argument("what", choices=("leg", "pub", "ccu"))
    build.add_argument("folders", nargs="+", type=Path, help="git folders, then a work folder")
    build.add_argument("--commit", default="HEAD", help="of the algorithms, the newest by default")
    build.add_argument("--ops", type=_words, default=(), help="ccu: ops compiled, all by default")
    build.set_defaults(run=_build)
    kernels = commands.add_parser("kernels")
    kernels.add_argument("folder", type=Path, help="what build ccu printed")
    kernels.add_argument("file", type=Path)
    kernels.add_argument("--source", required=True, help="repository@commit of the folder")
    kernels.add_argument("--ops", type=_words, default=())
    kernels.set_defaults(run=_kernels)
    renew = commands.add_parser("renew")
    renew.add_argument("file", type=Path)
    renew.add_argument("--source", required=True, help="repository@commit that the driver runs")
    renew.add_argument("--driver")
    renew.add_argument("--of", default="", help=f"{ON_THREADS}: the calls of the Ascend 950")
    renew.add_argument("--answers", type=Path, help="answers of a driver instead of asking it")
    renew.set_defaults(run=_renew)
    select = commands.add_parser("select")
    select.add_argument("--number", type=int, default=100, help="calls drawn, 100 by default")
    select.add_argument("--seed", type=int, default=1)
    select.add_argument("--driver", help="that of pub")
    select.add_argument("--file", type=Path, help="written: the golden selections")
    select.add_argument("--source", default="", help="repository@commit that the driver runs")
    select.set_defaults(run=_select)
    judge = commands.add_parser("judge")
    judge.add_argument("files", nargs="+", type=Path, help="golden runs")
    judge.add_argument("different", type=Path, help="written: the calls that differ, by cause")
    judge.set_defaults(run=_judge)
    return parser


def _kernels(options: argparse.Namespace) -> None:
    from scripts.oracle.ccu_kernels import OPS, write_verdicts

    write_verdicts(options.folder.resolve(), options.file, options.source, options.ops or OPS)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _build(options: argparse.Namespace) -> None:
    wanted = {"leg": 2, "pub": 3, "ccu": 3}[options.what]
    if len(options.folders) != wanted:
        raise SystemExit(
            f"build {options.what} takes {wanted} folders, not {len(options.folders)}."
        )
    folders = [folder.resolve() for folder in options.folders]
    if options.what == "leg":
        driver = build_leg(folders[0], folders[1], options.commit)
    elif options.what == "pub":
        driver = build_pub(folders[0], folders[1], folders[2], options.commit)
    else:
        driver = make_ccu_folder(folders[0], folders[1], folders[2], options.commit, options.ops)
    _say(str(driver))


def _renew(options: argparse.Namespace) -> None:
    answers: Iterable[Answer]
    is_950 = options.of == ON_THREADS
    parts = PARTS_950 if is_950 else PARTS
    if options.answers:
        answers = map(answer_of, _lines(options.answers, 1))
    else:
        answers = ask((case for part in parts for case in part()), driver_of(options.driver))
    small = (answer for answer in answers if task_count(answer) <= MOST_TASKS)
    kept = kept_lines(options.file) if is_950 else []
    count = write_golden(options.file, options.source, small, kept)
    _say(f"{count} calls, {len(kept)} kept: {options.file}")


def _select(options: argparse.Namespace) -> None:
    cases = drawn_cases(options.number, options.seed)
    lines = list(ask_selections(cases, driver_of(options.driver)))
    found = [(line, names_of(line), choice_of(line["case"]).executor) for line in lines]
    different = [one for one in found if one[2] not in one[1] and not _both_refuse(*one[1:])]
    for line, names, mine in different:
        _say(f"HCCL {' '.join(names)}, here {mine} | {words_of(line['case'])}")
    _say(f"{len(lines) - len(different)} of {len(lines)} calls name the same algorithm")
    if options.file:
        write_selections(options.file, options.source, lines)


def _both_refuse(names: tuple[str, ...], mine: str | None) -> bool:
    return mine is None and all(name.startswith("refused") for name in names)


def _judge(options: argparse.Namespace) -> None:
    judged = list(judge_all(golden for file in options.files for golden in read_golden(file)))
    found = differences(judged)
    options.different.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    PROOFS.write_text(_proofs(proofs_of(judged)), "utf-8")
    for outcome, number in found["outcomes"].items():
        _say(f"{number:6} {outcome}")
    for cause, of in found["causes"].items():
        _say(f"{len(of['calls']):6} differ, {cause}{'' if of['why'] else ' (unexplained)'}")


def _proofs(proofs: Mapping[str, Proof]) -> str:
    """Return the text of the proofs, an executor a line, by HCCL's code."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for name, proof in proofs.items():
        row = [proof.calls, proof.but_for_copies, proof.copies]
        by_source[proof.source].append(f"  {json.dumps(name)}: {json.dumps(row)}")
    parts = []
    for source, lines in by_source.items():
        rows = ",\n".join(lines)
        parts.append(f"{json.dumps(source)}: {{\n{rows}\n}}")
    return f"{{{', '.join(parts)}}}\n"


def _lines(path: Path, every: int) -> Iterator[dict[str, object]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for number, line in enumerate(lines):
            if number % every == 0:
                yield json.loads(line)


def _answers(options: argparse.Namespace) -> Iterable[Answer]:
    if options.answers:
        return map(answer_of, _lines(options.answers, options.every))
    cases: list[Case]
    cases = (
        list(_lines(options.cases, options.every)) if options.cases else [case_of(options.words)]
    )
    return ask(cases, driver_of(options.driver))


def _ask(options: argparse.Namespace) -> None:
    for answer in _answers(options):
        _say(f"{words_of(answer.case)}\n{' '.join(answer.executors)} {answer.refusal}")
        _say(f"tag {' '.join(answer.tags)}, levels {answer.levels}, requests {answer.requests[:1]}")
        for rank, streams in enumerate((answer.run or [])[: options.ranks]):
            for stream, events in enumerate(streams):
                _say(f"rank {rank} stream {stream}")
                for number, event in enumerate(events):
                    _say(f"  {number:4} {event}")


def _compare(options: argparse.Namespace) -> None:
    causes: Counter[str] = Counter()
    for answer in _answers(options):
        found = compare(answer)
        causes[_cause(found)] += 1
        if options.words:
            _show(found, options)
        elif not found.is_equal and (options.all or found.fidelity.is_same):
            _say(f"{_cause(found)} | {words_of(answer.case)}")
    for cause, number in sorted(causes.items()):
        _say(f"{number:6} {cause}")


def _cause(found: Verdict) -> str:
    answer, here = found.answer, found.here
    chosen = here.selection
    mine = answer.case.get("alg") or (chosen.hccl_executor if chosen else here.error[:60])
    if found.choice != "same":
        theirs = " ".join(answer.executors) or answer.refusal
        return f"choice {found.choice}: {answer.case['op']} HCCL {theirs}, here {mine}"
    tag = " TAG" if found.tag is False else ""
    tasks = found.closeness or answer.refusal or here.error[:60] or "no tasks"
    requests = f" REQUESTS {','.join(found.unequal)}" if found.unequal else ""
    return f"{found.fidelity.kind}: tasks equal: {tasks}{tag}{requests} | {mine}"


def _show(found: Verdict, options: argparse.Namespace) -> None:
    answer, here = found.answer, found.here
    _say(_cause(found))
    _say(f"HCCL {answer.tags} {answer.levels} {answer.requests[:2]} {answer.refusal}")
    if here.selection is not None:
        chosen = here.selection
        _say(f"here {chosen.tag!r} {dict(chosen.hccl_algorithm)} {here.requests[:2]} {here.error}")
    if answer.run is None or here.run is None:
        return
    closeness = "all" if options.local else "but for local copies"
    shown = 0
    for text in first_differences(here.run, answer.run, closeness):
        rank = int(text.split()[1])
        if rank >= shown + options.ranks:
            break
        _say(text)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()

"""Cost models by name and from files, and every way in which a file can be wrong."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.errors import FileError, NotSupportedError, ParameterError
from hccl_py.simulator import COSTS, CostModel, find_cost, read_cost, write_cost
from tests.simulator.costs import COST

LINK = {"alpha_us": 1, "gbps": 2.5}
PORT = {"links": ["hccs", "roce"], "gbps": 40}
WHOLE = {
    **dict.fromkeys(("hccs", "sio", "pcie", "roce"), LINK),
    "reduce_gbps": None,
    "copy_gbps": 10,
}


def written(folder: Path, document: object, name: str = "mine.json") -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    (folder / name).write_text(text)
    return str(folder / name)


def refused(path: str) -> tuple[str, str]:
    with pytest.raises(FileError) as caught:
        read_cost(path)
    assert caught.value.message.startswith(f"{path}: ")
    return caught.value.message.removeprefix(f"{path}: "), caught.value.hint


@pytest.mark.parametrize("name", COSTS)
def test_names(name: str) -> None:
    assert find_cost(name, "atlas-800t-a2") is COSTS[name]


def test_formula_is_that_of_the_product() -> None:
    formula = find_cost("formula", "atlas-800-9000")
    assert formula == CostModel.of("atlas-800-9000").formula()
    assert formula.hccs == COSTS["atlas-800-9000"].hccs
    assert formula.copy_gbps is None


def test_a_misspelt_name() -> None:
    with pytest.raises(ParameterError, match="--cost 'formulae' is unknown") as caught:
        find_cost("formulae", "mesh")
    assert caught.value.hint == "Did you mean formula? A file ends in .json, .yaml, .yml."


SORTS = ("hccs", "sio", "pcie", "roce")
rates = st.none() | st.floats(1e-3, 1e6)
links = st.fixed_dictionaries(
    {"alpha_us": st.floats(0, 1e6), "gbps": rates, "ports": st.integers(1, 64)}
)
ports: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "links": st.lists(st.sampled_from(SORTS), min_size=1, unique=True),
        "gbps": st.floats(1e-3, 1e6),
    }
)
models = st.fixed_dictionaries(
    {
        "name": st.text(st.characters(codec="utf-8"), max_size=20),
        **dict.fromkeys(("hccs", "sio", "pcie", "roce"), links),
        **dict.fromkeys(("reduce_gbps", "copy_gbps", "memory_gbps"), rates),
        **dict.fromkeys(("notify_us", "task_us", "hop_us"), st.floats(0, 1e3)),
        "local_notify_us": st.none() | st.floats(0, 1e3),
        "memory_users": st.sampled_from(["local", "all"]),
        "jitter": st.floats(0, 100),
        "jitter_seed": st.integers(0, (1 << 31) - 1),
        "inline_reductions": st.sampled_from(["sum", "longest"]),
        "shared_ports": st.lists(
            ports, unique_by=lambda port: frozenset(port["links"]), max_size=3
        ),
    }
).map(CostModel.model_validate)


@given(model=models, suffix=st.sampled_from([".json", ".yaml", ".YML"]))
def test_what_is_written_is_read(
    model: CostModel, suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"cost{suffix}"
    write_cost(path, model)
    assert read_cost(path) == find_cost(str(path), "mesh") == model


def test_a_base_and_what_differs(tmp_path: Path) -> None:
    path = written(tmp_path, {"base": "atlas-900-a3", "hccs": {"gbps": 21.5}, "task_us": 2})
    base, found = COSTS["atlas-900-a3"], read_cost(path)
    plain = {"read_gbps": None, "write_gbps": None, "device_gbps": None}
    assert found.hccs == base.hccs.model_copy(update={"gbps": 21.5, **plain})
    assert found.hccs.far_alpha_us == base.hccs.far_alpha_us
    assert (found.name, found.task_us, found.roce) == ("mine", 2, base.roce)


def test_yaml_with_a_base(tmp_path: Path) -> None:
    text = "base: selection   # 60 us\nname: ours\nroce:\n  alpha_us: 25\nreduce_gbps: null\n"
    found = read_cost(written(tmp_path, text, "mine.yaml"))
    assert (found.name, found.roce.alpha_us, found.hccs.alpha_us) == ("ours", 25, 60)


def test_the_name_is_that_of_the_file(tmp_path: Path) -> None:
    assert read_cost(written(tmp_path, WHOLE)).name == "mine"


@pytest.mark.parametrize(
    ("document", "message", "hint"),
    [
        ([], "$: expected an object, found a list of 0.", "keys and values"),
        ({"hcss": LINK}, "hcss: expected a key of the format, found", "Did you mean hccs?"),
        (
            {"base": "selection", "hccs": {"alpha_us": 1, "gbs": 2}},
            "hccs.gbs: expected a key of the format",
            "Did you mean gbps or read_gbps?",
        ),
        ({**WHOLE, "hccs": 20}, "hccs: expected an object, found 20.", "braces"),
        ({**WHOLE, "hccs": {"alpha_us": 1}}, "hccs.gbps: expected a value", "alpha_us, gbps"),
        ({"hccs": LINK}, "sio: expected a value, found nothing", "Keys that must be there"),
        ({"base": "atlas-a2"}, "base: expected the name of a cost model", "Did you mean"),
        ({"base": 3}, "base: expected the name of a cost model, found 3", "Known"),
        ({"base": None}, "base: expected the name of a cost model, found null", "Known"),
        ({**WHOLE, "copy_gbps": 0}, "copy_gbps: expected greater than or equal to", "Write"),
        ({**WHOLE, "copy_gbps": 1e-320}, "copy_gbps: expected greater than or equal to", "Write"),
        ({**WHOLE, "task_us": 1e308}, "task_us: expected less than or equal to", "Write"),
        ({**WHOLE, "copy_gbps": "10"}, 'copy_gbps: expected a valid number, found "10"', ""),
        ({**WHOLE, "copy_gbps": True}, "copy_gbps: expected a valid number, found true", ""),
        ({**WHOLE, "copy_gbps": [1]}, "copy_gbps: expected a valid number, found a list", ""),
        ({**WHOLE, "task_us": -1}, "task_us: expected greater than or equal to 0", ""),
        ({**WHOLE, "task_us": None}, "task_us: expected a valid number, found null", ""),
        ({**WHOLE, "name": 3}, "name: expected a string, found 3", ""),
        (
            {**WHOLE, "hccs": {**LINK, "ports": 1.5}},
            "hccs.ports: expected a whole number, found 1.5",
            "",
        ),
        ({**WHOLE, "hccs": {**LINK, "ports": 0}}, "hccs.ports: expected greater than", ""),
        ({**WHOLE, "shared_ports": PORT}, "shared_ports: expected a list, found an object", ""),
        ({**WHOLE, "shared_ports": [5]}, "shared_ports[0]: expected a", ""),
        (
            {**WHOLE, "shared_ports": [{**PORT, "links": ["hccs", "nvlink"]}]},
            "shared_ports[0].links[1]: expected 'hccs', 'sio', 'pcie' or 'roce', found \"nvlink\"",
            "",
        ),
        (
            {**WHOLE, "shared_ports": [{**PORT, "links": []}]},
            "shared_ports[0].links: expected sorts of links, each once, found a list of 0",
            "hccs, sio",
        ),
        (
            {**WHOLE, "shared_ports": [{**PORT, "links": ["sio", "sio"]}]},
            "shared_ports[0].links: expected sorts of links, each once, found a list of 2",
            "hccs, sio",
        ),
        (
            {**WHOLE, "shared_ports": [PORT, {**PORT, "gbps": 4}]},
            "shared_ports: expected one port for the same links, found a list of 2",
            "slower",
        ),
        ({**WHOLE, "shared_ports": [{"links": ["sio"]}]}, "gbps: expected a value", "links, gbps"),
        (
            {**WHOLE, "shared_ports": [{**PORT, "gbps": None}]},
            "shared_ports[0].gbps: expected a valid number, found null",
            "",
        ),
        ({**WHOLE, "shared_ports": [{**PORT, "gbps": 0}]}, "[0].gbps: expected greater", ""),
        ({**WHOLE, "shared_ports": [{**PORT, "gbp": 1}]}, "[0].gbp: expected a key", "gbps"),
        ('{"base": "selection", "base": "300i-duo"}', 'the key "base" once, found it twice', ""),
        ('{"task_us": NaN}', "task_us: expected a value that JSON has, found NaN", ""),
        ('{"task_us": 1e999, "base": "selection"}', "task_us: expected a finite number", ""),
        ('{"base": ', "line 1 column 10: the text is not JSON", "cut off"),
        ("[" * 100_000, "expected at most 8 levels of brackets", "three levels"),
        (f'{{"task_us": {"9" * 5000}}}', "numbers of at most 19 digits", "19 digits"),
    ],
)
def test_json_that_is_no_cost_model(
    document: object, message: str, hint: str, tmp_path: Path
) -> None:
    said = refused(written(tmp_path, document))
    assert message in said[0]
    assert hint in said[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "$: expected an object, found null."),
        ("- 1\n", "$: expected an object, found a list of 1."),
        ("base: [", "the text is not YAML"),
        ("\x01", "the text is not YAML"),
        ("a: &x [*x]\n", "line 1: expected an alias of a value before it, found itself."),
        ("1: 2\n", "line 1: expected a string as the key, found 1."),
        ("? [1, 2]\n: 3\n", "line 1: expected a string as the key, found a list of 2."),
        ("base: 2026-01-01\n", 'base: expected the name of a cost model, found "2026-01-01".'),
        ("base: selection\nbase: 300i-duo\n", 'line 2: expected the key "base" once, found it'),
        ("base: selection\nhccs: {gbps: 1, gbps: 2}\n", 'line 2: expected the key "gbps" once'),
        ("base: selection\ntask_us: .inf\n", "task_us: expected a finite number"),
        ("base: selection\ntask_us: yes\n", 'task_us: expected a valid number, found "yes".'),
        ("base: selection\nhccs: {1: 2}\n", "line 2: expected a string as the key"),
        ("base: selection\nroce: {gbps: 1.0e+300}\n", "roce.gbps: expected less than or equal to"),
        ("base: selection\nhccs: 5\n", "hccs: expected an object, found 5."),
        (
            "a: !!python/object/apply:os.getcwd []\n",
            "line 1: expected a value without a tag, found",
        ),
        (
            f"task_us: {'9' * 5000}\n",
            "line 1: expected numbers of at most 19 digits, found one of thousands.",
        ),
        (
            "base: selection\ntask_us: 2026-13-45\n",
            'task_us: expected a valid number, found "2026-13-45".',
        ),
        ("[" * 1500, "at most 100 levels of nesting, found more"),
    ],
)
def test_yaml_that_is_no_cost_model(text: str, message: str, tmp_path: Path) -> None:
    assert message in refused(written(tmp_path, text, "mine.yml"))[0]


def test_yaml_that_unfolds_without_end_is_not_unfolded(tmp_path: Path) -> None:
    levels = [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 30)]
    text = "\n".join(["a0: &a0 [1]", *levels])
    assert (
        "line 6: expected at most 500,000 values, found more."
        in refused(written(tmp_path, text, "bomb.yaml"))[0]
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(str(tmp_path / "none.json"))[0]
    large = written(tmp_path, " " * 2_000_000, "large.yaml")
    assert "expected at most 1,000,000 bytes" in refused(large)[0]
    (tmp_path / "latin.json").write_bytes(b'{"name": "\xe9"}')
    assert "expected UTF-8 text" in refused(str(tmp_path / "latin.json"))[0]
    assert "ends in .json, .yaml, .yml" in refused(str(tmp_path / "cost.toml"))[0]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        write_cost(tmp_path / "none" / "cost.json", COST)
    with pytest.raises(FileError, match="ends in"):
        write_cost(tmp_path / "cost.txt", COST)


@pytest.mark.parametrize("act", [read_cost, lambda path: write_cost(path, COST)])
def test_yaml_without_pyyaml(act: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(NotSupportedError, match="PyYAML") as caught:
        act(written(tmp_path, "base: selection", "mine.yaml"))
    assert caught.value.hint == "Install hccl-py[yaml], or write the file as JSON."

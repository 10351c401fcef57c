"""Cost models from outside: by name, or from a JSON or YAML file.

    {"base": "atlas-800t-a2", "hccs": {"alpha_us": 4.2, "gbps": 21.5}}

A file states the fields of `CostModel`. With a `base`, a model by name, it states only those that
differ, links member by member too. Its own name is that of the file, unless it states one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from hccl_py.clocks.cost import (
    COSTS,
    GIVE_WAY,
    LINKS,
    CostModel,
    EngineCost,
    Engines,
    LinkCost,
    ProtocolCost,
    Protocols,
    SharedPort,
    ports_once,
)
from hccl_py.clocks.measured import HeldOut, MeasuredSet
from hccl_py.documents.checks import an_object, defect, format_value, only_keys
from hccl_py.documents.disk import PathLike, format_path, read_file, write_file
from hccl_py.documents.kind import FileKind, named
from hccl_py.documents.models import checked
from hccl_py.documents.parse import parse_document
from hccl_py.documents.yaml_text import YAML, parse_yaml, pyyaml
from hccl_py.errors import FileError, ParameterError, did_you_mean

MOST_BYTES = 1_000_000

FORMULA = "formula"

_SUFFIXES = (".json", *YAML)
_BASE = "base"
_FOR_PEOPLE = {"name", "sources", "uncertain", "measured", _BASE}
"""Keys that change no time: with others a file is no model any more that its base's times judged.
"""

_KIND = FileKind(
    noun="cost model",
    parts="keys and numbers",
    larger="A cost model is a page of numbers.",
    depth="A cost model has three levels.",
    mark=re.compile(rb"\b(hccs|sio|pcie|roce|alpha_us)\b"),
)


class _StrictLink(LinkCost):
    model_config = ConfigDict(strict=True)


class _StrictPort(SharedPort):
    model_config = ConfigDict(strict=True)


class _StrictEngine(EngineCost):
    model_config = ConfigDict(strict=True)


class _StrictEngines(Engines):
    model_config = ConfigDict(strict=True)

    aicpu_ts: _StrictEngine = _StrictEngine()
    ccu: _StrictEngine = _StrictEngine()
    host: _StrictEngine = _StrictEngine()


class _StrictHeldOut(HeldOut):
    model_config = ConfigDict(strict=True)


class _StrictSet(MeasuredSet):
    model_config = ConfigDict(strict=True)

    held_out: _StrictHeldOut | None = None


class _StrictProtocol(ProtocolCost):
    model_config = ConfigDict(strict=True)


class _StrictProtocols(Protocols):
    model_config = ConfigDict(strict=True)

    simple: _StrictProtocol = _StrictProtocol()
    ll: _StrictProtocol = _StrictProtocol()
    ll128: _StrictProtocol = _StrictProtocol()


class _StrictCost(CostModel):
    """The same fields without conversions: true is not 1, and "1" is not a number."""

    model_config = ConfigDict(strict=True)

    hccs: _StrictLink
    sio: _StrictLink
    pcie: _StrictLink
    roce: _StrictLink
    engines: _StrictEngines = _StrictEngines()
    protocols: _StrictProtocols = _StrictProtocols()
    measured: Annotated[tuple[_StrictSet, ...], Field(strict=False)] = ()
    shared_ports: Annotated[
        tuple[_StrictPort, ...], Field(strict=False), AfterValidator(ports_once)
    ] = ()


def find_cost(text: str, product: str) -> CostModel:
    """Return the model that `--cost` means: a name, `formula` for the closed formulas of a
    product's model, or a file.

    Raises ParameterError for other names, FileError for files that are no cost model.
    """
    if text == FORMULA:
        return CostModel.of(product).formula()
    if text in COSTS:
        return COSTS[text]
    if text.lower().endswith(_SUFFIXES):
        return read_cost(text)
    hint = f"{did_you_mean(text, [*COSTS, FORMULA])} A file ends in {', '.join(_SUFFIXES)}."
    raise ParameterError(f"--cost {text!r} is unknown.", hint)


def read_cost(path: PathLike) -> CostModel:
    """Return the model of a JSON or YAML file, told apart by the suffix.

    Raises FileError, which names the place in the file; NotSupportedError for YAML where PyYAML is
    not installed.
    """
    suffix = _suffix(path)
    data = read_file(path, MOST_BYTES, _KIND)
    parse = parse_yaml if suffix in YAML else parse_document
    return named(format_path(path), _KIND, lambda: _model(parse(data, _KIND), Path(path).stem))


def write_cost(path: PathLike, model: CostModel) -> None:
    """Write a model with all its fields, as JSON or YAML by the suffix."""
    values = model.model_dump()
    if _suffix(path) in YAML:
        text = pyyaml().safe_dump(values, sort_keys=False, allow_unicode=True)
    else:
        text = model.model_dump_json(indent=2) + "\n"
    write_file(path, text.encode(), _KIND)


def _suffix(path: PathLike) -> str:
    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in _SUFFIXES:
        raise FileError(
            f"{format_path(path):.200}: a cost model's file ends in {', '.join(_SUFFIXES)}.",
            "Rename the file.",
        )
    return suffix


def _model(document: object, stem: str) -> CostModel:
    """Return the model of a document; what it leaves out is that of its base."""
    stated = an_object("", document, "Write a cost model's keys and values.")
    only_keys("", stated, [*CostModel.model_fields, _BASE])
    merged = {**_base(stated), "name": stem}
    if stated.keys() - _FOR_PEOPLE:
        merged["measured"] = ()
    for key, value in stated.items():
        if key in LINKS:
            link = an_object(key, value)
            replaced = {finer: None for name in link for finer in GIVE_WAY.get(name, ())}
            merged[key] = {**merged.get(key, {}), **replaced, **link}
        elif key != _BASE:
            merged[key] = value
    return CostModel.model_validate(checked(_StrictCost, merged).model_dump())


def _base(stated: Mapping[str, object]) -> dict[str, Any]:
    name = stated.get(_BASE)
    if _BASE not in stated:
        return {}
    if not isinstance(name, str) or name not in COSTS:
        hint = did_you_mean(str(name)[:40], COSTS)
        raise defect(_BASE, "the name of a cost model", format_value(name), hint)
    return COSTS[name].model_dump()

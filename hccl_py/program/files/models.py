"""The envelope of `hccl-py.program/1` as pydantic models; task lists are checked by columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from hccl_py.errors import ProgramFileError
from hccl_py.program.files.checks import an_object, at, defect, only_keys, spell

__all__ = ["FORMAT", "FileModel", "LinkModel", "OpModel", "ResourceModel", "Strict", "checked"]

FORMAT = "hccl-py.program/1"

LinkName = Literal["sdma", "rdma"]


class Strict(BaseModel):
    """No conversions: true is not a number, "1" is none either. Bulk members are left to columns
    (`Any`).
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class FileModel(Strict):
    """A program file, in the short form (`link`, `exported`) or the general one (`links`).

    `executor`, `rounds` (where the last rounds have no task) and `plane` are what hccl-py adds.
    """

    format: Literal["hccl-py.program/1"]
    executor: str = ""
    op: Any
    ranks: int
    rounds: int | None = None
    calls: list[Any] | None = None
    link: LinkName | None = None
    plane: str | None = None
    exported: list[Any] | None = None
    links: list[Any] | None = None
    buffers: Any
    resources: dict[str, Any] | None = None
    tasks: Any


class OpModel(Strict):
    """The call that the program carries out; only a barrier does without a data type."""

    name: str
    dtype: str | None = None
    count: int | None = None
    reduce: str | None = None
    root: int | None = None
    in_place: bool = False
    mode: Literal["op_base", "graph"] = "op_base"
    counts: Any = None
    displs: Any = None
    matrix: Any = None
    pairs: Any = None


class ResourceModel(Strict):
    """What one rank requests; a part that is left out is not checked against use."""

    streams: int | None = None
    local_notifies: dict[str, Any] | None = None
    channel_notifies: dict[str, Any] | None = None


class LinkModel(Strict):
    """A transport between two ranks."""

    id: int
    ranks: list[Any]
    kind: LinkName
    exports: dict[str, Any]
    notifies: int = 3
    plane: str = "flat"


M = TypeVar("M", bound=Strict)


def checked(model: type[M], value: object, path: str) -> M:
    """Return the model of a value; ProgramFileError names the first member that does not fit."""
    mapping = an_object(path, value)
    only_keys(path, mapping, model.model_fields)
    try:
        return model.model_validate(mapping)
    except ValidationError as error:
        raise _first(error.errors(include_url=False), path, model, mapping) from None


def _first(
    errors: list[ErrorDetails], path: str, model: type[Strict], mapping: Mapping[str, object]
) -> ProgramFileError:
    error = errors[0]
    place = at(path, *error["loc"])
    if error["type"] == "missing":
        needed = [name for name, field in model.model_fields.items() if field.is_required()]
        return defect(place, "a value", "nothing", f"Keys that must be there: {', '.join(needed)}.")
    expected = error["msg"].removeprefix("Input should be ")
    expected = _WORDS.get(expected, expected)
    return defect(place, expected, spell(error["input"]), f"Write {expected} here.")


_WORDS = {
    "a valid boolean": "true or false",
    "a valid dictionary": "an object",
    "a valid integer": "a whole number",
    "a valid list": "a list",
    "a valid string": "a string",
    "a valid string, unable to parse raw data as a unicode string": "a string of whole characters",
}
"""JSON's words for pydantic's."""

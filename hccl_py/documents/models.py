"""Objects of a document as pydantic models; errors name the first member that does not fit."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hccl_py.documents.checks import an_object, at, defect, format_value, only_keys
from hccl_py.errors import FileError, did_you_mean


class Strict(BaseModel):
    """No conversions: true is not a number, "1" is none either. Bulk members are left to columns
    (`Any`).
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


M = TypeVar("M", bound=BaseModel)


def checked(model: type[M], value: object, path: str = "") -> M:
    """Return the model of a value; FileError names the first member that does not fit.

    Checks of a model's own that raise PydanticCustomError say what they expect, and give a hint in
    its context.
    """
    mapping = an_object(path, value)
    if model.model_config.get("extra") == "forbid":
        only_keys(path, mapping, _keys(model))
    try:
        return model.model_validate(mapping)
    except ValidationError as error:
        raise _first(error.errors(include_url=False)[0], path, model) from None


def _first(error: ErrorDetails, path: str, model: type[BaseModel]) -> FileError:
    place = at(path, *error["loc"])
    if error["type"] == "missing":
        return defect(place, "a value", "nothing", _missing(error, model))
    if error["type"] == "extra_forbidden":
        hint = did_you_mean(str(error["loc"][-1])[:40], _keys(_model_at(model, error["loc"])))
        return defect(place, "a key of the format", format_value(str(error["loc"][-1])), hint)
    expected = _TYPES.get(error["type"], error["msg"].removeprefix("Input should be "))
    hint = error.get("ctx", {}).get("hint", f"Write {expected} here.")
    return defect(place, expected, format_value(error["input"]), hint)


def _missing(error: ErrorDetails, model: type[BaseModel]) -> str:
    """Return the hint for a missing key: a key that may be misspelt, or all required keys."""
    key, fields = str(error["loc"][-1]), _keys(_model_at(model, error["loc"]))
    there = error["input"] if isinstance(error["input"], Mapping) else {}
    free = [other for other in there if other not in fields and len(other) < 2 * len(key)]
    near = difflib.get_close_matches(key, free, n=1)
    if near:
        return f"Is it what {format_value(near[0])} is meant to be?"
    needed = [name for name, field in fields.items() if field.is_required()]
    return f"Keys that must be there: {', '.join(needed)}."


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their keys in documents."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_at(model: type[BaseModel], loc: Sequence[int | str]) -> type[BaseModel]:
    """Return the model that the last key of a path belongs to; positions in lists are skipped."""
    for key in loc[:-1]:
        if isinstance(key, str):
            found = _keys(model)[key].annotation
            inner = next(iter(get_args(found)), found)
            assert isinstance(inner, type)
            assert issubclass(inner, BaseModel)
            model = inner
    return model


_TYPES = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "an object",
    "string_type": "a string",
    "tuple_type": "a list",
    "string_unicode": "a string of whole characters",
}
"""JSON's words for pydantic's types."""

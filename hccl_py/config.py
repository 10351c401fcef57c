"""Settings: HCCL's environment variables, read once, overridable per communicator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hccl_py.enums import Mode
from hccl_py.errors import ConfigError

__all__ = ["Config"]

_VARIABLES = {
    "buffsize_mb": "HCCL_BUFFSIZE",
    "algo": "HCCL_ALGO",
    "deterministic": "HCCL_DETERMINISTIC",
}

_EXPECTED = {
    "buffsize_mb": "a whole number of MB, 1 to 1048576",
    "algo": 'levels and algorithms such as "level0:NA;level1:ring"',
    "deterministic": "false, true or strict",
    "mode": "op_base or graph",
}


class Config(BaseModel):
    """What the user may set; HCCL's names and defaults.

    `buffsize_mb` is the size of CCL_In and of CCL_Out each, in MB of 2^20 bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    buffsize_mb: int = Field(default=200, ge=1, le=1 << 20)
    algo: str = ""
    deterministic: Literal["false", "true", "strict"] = "false"
    mode: Mode = Mode.OP_BASE

    @property
    def ccl_bytes(self) -> int:
        """Bytes of each CCL buffer."""
        return self.buffsize_mb << 20

    @staticmethod
    def load(environment: Mapping[str, str] | None = None, **overrides: object) -> Config:
        """Return the settings of the environment; overrides that are not None win.

        Raises ConfigError, which names the variable, its value and what was expected (HCCL's
        EI0001).
        """
        environment = os.environ if environment is None else environment
        values: dict[str, object] = {
            name: environment[variable].strip()
            for name, variable in _VARIABLES.items()
            if variable in environment
        }
        if "deterministic" in values:
            values["deterministic"] = str(values["deterministic"]).lower()
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            return Config.model_validate(values | given)
        except ValidationError as error:
            raise _config_error(error, given) from None


def _config_error(error: ValidationError, given: Mapping[str, object]) -> ConfigError:
    first = error.errors()[0]
    name = str(first["loc"][0])
    variable = _VARIABLES.get(name, "")
    what = (
        f"Environment variable {variable}" if variable and name not in given else f"Setting {name}"
    )
    hint = (
        f"Expected: {_EXPECTED[name]}."
        if name in _EXPECTED
        else f"Known settings: {', '.join(Config.model_fields)}."
    )
    return ConfigError(f"{what} has the illegal value {first['input']!r}.", hint)

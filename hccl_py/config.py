"""Settings: HCCL's environment variables, read once, overridable per communicator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hccl_py.algo import check_algo
from hccl_py.enums import Mode
from hccl_py.errors import ConfigError

if TYPE_CHECKING:
    from hccl_py.topology.presets import Product
    from hccl_py.topology.topology import Topology

__all__ = ["Config"]

DEFAULT_TIMEOUT = 1836
"""Seconds: 27 times the 68 s that timers of older devices tick in."""

TIMEOUT_TICK = 68
MAX_TIMEOUT = 2147483647

_VARIABLES = {
    "buffsize_mb": "HCCL_BUFFSIZE",
    "algo": "HCCL_ALGO",
    "deterministic": "HCCL_DETERMINISTIC",
    "op_expansion_mode": "HCCL_OP_EXPANSION_MODE",
    "exec_timeout": "HCCL_EXEC_TIMEOUT",
    "intra_pcie_enable": "HCCL_INTRA_PCIE_ENABLE",
    "intra_roce_enable": "HCCL_INTRA_ROCE_ENABLE",
    "inter_hccs_disable": "HCCL_INTER_HCCS_DISABLE",
    "wire": "HCCL_PY_WIRE",
    "device": "HCCL_PY_DEVICE",
}

_EXPECTED = {
    "buffsize_mb": "a whole number of MB, 1 to 1048576",
    "algo": 'levels and algorithms such as "level0:NA;level1:ring"',
    "deterministic": "false, true or strict",
    "mode": "op_base or graph",
    "op_expansion_mode": "HOST, HOST_TS, AI_CPU, AICPU_CacheDisable, AIV, AICPU_TS, CCU_MS or "
    "CCU_SCHED, as the product has them",
    "exec_timeout": f"a whole number of seconds, 0 to {MAX_TIMEOUT}",
    "intra_pcie_enable": "0 or 1",
    "intra_roce_enable": "0 or 1",
    "inter_hccs_disable": "TRUE or FALSE",
    "wire": "gloo or mpi",
    "device": "cpu, cuda or npu",
    "strict": "true or false",
}

_MODES = {
    "910B": ("HOST", "HOST_TS", "AI_CPU", "AIV"),
    "910_93": ("AI_CPU", "AIV", "AICPU_CacheDisable"),
    "950": ("AICPU_TS", "AIV", "CCU_MS", "CCU_SCHED"),
}
"""What HCCL_OP_EXPANSION_MODE may be by device, the default first; others have the host only."""

_UNFOLDED_ON_A2 = ("all_gather", "all_to_all", "all_to_all_v", "all_to_all_vc")
"""The ops that 910B's AI_CPU mode covers; the host expands the others."""

_OLD_DEVICES = ("910A", "310P3")


def _switch(value: object) -> object:
    return {"0": False, "1": True}.get(value, "") if isinstance(value, str) else value


def _truth(value: object) -> object:
    return (
        {"TRUE": True, "FALSE": False}.get(value.upper(), "") if isinstance(value, str) else value
    )


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _digits(value: object) -> object:
    """Refuse what int() takes beyond digits, and bool."""
    if isinstance(value, bool):
        return ""
    return "" if isinstance(value, str) and not (value.isascii() and value.isdigit()) else value


class Config(BaseModel):
    """What the user may set; HCCL's names and defaults.

    `buffsize_mb` is the size of CCL_In and of CCL_Out each, in MB of 2^20 bytes. What is None is
    the product's default. `intra_pcie_enable`, `intra_roce_enable` and `inter_hccs_disable` choose
    links (`linked`), `exec_timeout` bounds waits (`wait_seconds`). `wire` is what carries
    the messages of real processes, which without it share memory inside a host; `device` is what
    the device platform runs on, the accelerator that torch finds without it. `strict` makes
    selection raise where HCCL would refuse a call or take an executor that is not offered here.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    buffsize_mb: Annotated[int, BeforeValidator(_digits)] = Field(default=200, ge=1, le=1 << 20)
    algo: str = ""
    deterministic: Annotated[Literal["false", "true", "strict"], BeforeValidator(_lower)] = "false"
    mode: Mode = Mode.OP_BASE
    op_expansion_mode: (
        Literal[
            "HOST",
            "HOST_TS",
            "AI_CPU",
            "AICPU_CacheDisable",
            "AIV",
            "AICPU_TS",
            "CCU_MS",
            "CCU_SCHED",
        ]
        | None
    ) = None
    exec_timeout: Annotated[
        Annotated[int, Field(ge=0, le=MAX_TIMEOUT)] | None, BeforeValidator(_digits)
    ] = None
    intra_pcie_enable: Annotated[bool | None, BeforeValidator(_switch)] = None
    intra_roce_enable: Annotated[bool | None, BeforeValidator(_switch)] = None
    inter_hccs_disable: Annotated[bool, BeforeValidator(_truth)] = False
    wire: Literal["gloo", "mpi"] | None = None
    device: Literal["cpu", "cuda", "npu"] | None = None
    strict: bool = False

    @property
    def ccl_bytes(self) -> int:
        """Bytes of each CCL buffer."""
        return self.buffsize_mb << 20

    def expansion(self, product: Product, op: str) -> str:
        """Return where an op is expanded to tasks on a product: HOST, AI_CPU, AIV, ..."""
        mode = self.op_expansion_mode or _MODES.get(product.device, ("HOST",))[0]
        if product.device == "910B" and mode == "AI_CPU" and op not in _UNFOLDED_ON_A2:
            return "HOST"
        return mode

    def linked(self, topology: Topology) -> Topology:
        """Return a topology with the links that the settings ask for, itself where it has them.

        Without HCCS, RDMA joins the servers of a superpod. RoCE replaces PCIe where one of the two
        settings says so; where neither does, a topology keeps what it has.
        """
        roce, pcie = self.intra_roce_enable, self.intra_pcie_enable
        return topology.linked(
            inter_hccs=topology.inter_hccs and not self.inter_hccs_disable,
            intra_roce=bool(roce) or (topology.intra_roce and not pcie),
        )

    def wait_seconds(self, product: Product) -> int | None:
        """Return how long a wait for a notify may take on a product; None: for ever."""
        seconds = DEFAULT_TIMEOUT if self.exec_timeout is None else self.exec_timeout
        if product.device in _OLD_DEVICES:
            return max(seconds // TIMEOUT_TICK * TIMEOUT_TICK, TIMEOUT_TICK)
        return seconds or None

    def check(self, product: Product) -> None:
        """Raise ConfigError for what the product does not take: modes and time-outs."""
        modes = _MODES.get(product.device, ("HOST",))
        if self.op_expansion_mode not in (None, *modes):
            raise _product_error(
                "op_expansion_mode", self.op_expansion_mode, product, " or ".join(modes)
            )
        if self.exec_timeout is None:
            return
        first, last = _timeout_range(self, product)
        if not first <= self.exec_timeout <= last:
            raise _product_error(
                "exec_timeout", self.exec_timeout, product, f"{first} to {last} seconds"
            )

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
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            config = Config.model_validate(values | given)
        except ValidationError as error:
            raise _config_error(error, values | given, given) from None
        _check_links(config)
        check_algo(config.algo)
        return config


def _check_links(config: Config) -> None:
    """Refuse what leaves open, or says twice, what links the devices of a server."""
    pcie, roce = config.intra_pcie_enable, config.intra_roce_enable
    if pcie and roce:
        raise ConfigError(
            "HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 1.",
            "Expected: at most one of them. (EI0001)",
        )
    if pcie is False and roce is None:
        raise ConfigError(
            "HCCL_INTRA_PCIE_ENABLE is 0 and HCCL_INTRA_ROCE_ENABLE is not set.",
            "Expected: HCCL_INTRA_ROCE_ENABLE=1 with it, for RoCE. (EI0001)",
        )


def _timeout_range(config: Config, product: Product) -> tuple[int, int]:
    if product.device in _OLD_DEVICES:
        return 1, 255 * TIMEOUT_TICK
    return (0, 1091) if config.op_expansion_mode == "AIV" else (0, MAX_TIMEOUT)


def _product_error(name: str, value: object, product: Product, expected: str) -> ConfigError:
    return ConfigError(
        f"{_VARIABLES[name]} has the illegal value {value!r} for {product.title}.",
        f"Expected: {expected}. (EI0001)",
    )


def _config_error(
    error: ValidationError, values: Mapping[str, object], given: Mapping[str, object]
) -> ConfigError:
    first: Any = error.errors()[0]
    name = str(first["loc"][0])
    variable = _VARIABLES.get(name, "")
    raw = values.get(name, first["input"])  # before our own validators made it comparable
    what = (
        f"Environment variable {variable}" if variable and name not in given else f"Setting {name}"
    )
    hint = (
        f"Expected: {_EXPECTED[name]}."
        if name in _EXPECTED
        else f"Known settings: {', '.join(Config.model_fields)}."
    )
    return ConfigError(f"{what} has the illegal value {raw!r}.", f"{hint} (EI0001)")

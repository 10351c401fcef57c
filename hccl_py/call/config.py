"""Settings: HCCL's environment variables, read once, overridable per communicator."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from hccl_py.call.algo import check_algo
from hccl_py.call.algo_executors import is_executors
from hccl_py.call.expansion import ExpansionMode, expansion_of, fallback, modes_of, unfolds
from hccl_py.enums import Mode
from hccl_py.errors import ConfigError, NotSupportedError

if TYPE_CHECKING:
    from hccl_py.call.op_param import OpParam
    from hccl_py.topology.presets import Product
    from hccl_py.topology.topology import Topology

GROUP_NAME = "hccl_world_group"
"""HCCL's name of the group of all ranks."""

DEFAULT_TIMEOUT = 1836
"""Seconds: 27 times the 68 s that timers of older devices tick in."""

TIMEOUT_TICK = 68
MOST_TICKS = 255
MAX_TIMEOUT = 2147483647

AIV_TIMEOUT = 1091
"""Seconds that a kernel of the vector cores may wait, and its default."""

_VARIABLES = {
    "buffsize_mb": "HCCL_BUFFSIZE",
    "algo": "HCCL_ALGO",
    "deterministic": "HCCL_DETERMINISTIC",
    "op_expansion_mode": "HCCL_OP_EXPANSION_MODE",
    "new_selector": "HCCL_USE_NEW_SELECTOR",
    "exec_timeout": "HCCL_EXEC_TIMEOUT",
    "intra_pcie_enable": "HCCL_INTRA_PCIE_ENABLE",
    "intra_roce_enable": "HCCL_INTRA_ROCE_ENABLE",
    "inter_hccs_disable": "HCCL_INTER_HCCS_DISABLE",
    "ruleset": "HCCL_PY_RULESET",
    "zero_copy": "HCCL_PY_ZERO_COPY",
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
    "new_selector": "0 or 1",
    "exec_timeout": f"seconds with up to two decimals, 0 to {MAX_TIMEOUT}",
    "intra_pcie_enable": "0 or 1",
    "intra_roce_enable": "0 or 1",
    "inter_hccs_disable": "TRUE or FALSE",
    "ruleset": "cann-2025.07, cann-2026.08 or hccl-170ddee",
    "zero_copy": "true or false",
    "wire": "gloo or mpi",
    "device": "cpu, cuda or npu",
    "strict": "true or false",
}

_SECONDS = re.compile(r"[0-9]{1,20}(\.[0-9]{1,2})?", re.ASCII)
_OLD_DEVICES = ("910A", "310P3")

RulesetName = Literal["cann-2025.07", "cann-2026.08", "hccl-170ddee"]
"""The rulesets of `selection/rulesets.py`, by name."""

DEFAULT_RULESET: RulesetName = "cann-2026.08"


def _whole(value: object, least: int, most: int) -> int:
    """Read a number in digits: not one of the texts that int() takes beyond these, and no bool."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError
    return value


def _seconds(value: object) -> float:
    """Read seconds with up to two decimals, without sign or exponent."""
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError
    if value != round(value, 2) or not 0 <= value <= MAX_TIMEOUT:
        raise ValueError
    return value


def _switch(value: object, words: Mapping[str, bool]) -> bool:
    """Read True or False, or a word for one of them."""
    found = words.get(value.upper()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise ValueError
    return found


def _word(value: object, words: tuple[str, ...]) -> str:
    """Read one of some words."""
    if not isinstance(value, str) or value not in words:
        raise ValueError
    return value


def _lower(value: object, words: tuple[str, ...]) -> str:
    """Read one of some words, in capital letters or not."""
    return _word(value.lower() if isinstance(value, str) else value, words)


def _ruleset(value: object) -> str:
    """Read a ruleset; names from before rulesets had releases have a hint to their successor."""
    if isinstance(value, str) and value.startswith("classic-"):
        raise ConfigError(
            f"The ruleset {value!r:.60} has no version.",
            "It was a mixture: cann-2025.07 has its tables, without rows that came later. (EI0001)",
        )
    return _word(value, get_args(RulesetName))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


_DIGIT = partial(_switch, words={"0": False, "1": True})
_TRUTH = partial(_switch, words={"TRUE": True, "FALSE": False})

_READERS: dict[str, Callable[[Any], object]] = {
    "buffsize_mb": partial(_whole, least=1, most=1 << 20),
    "algo": _text,
    "deterministic": partial(_lower, words=("false", "true", "strict")),
    "mode": Mode,
    "op_expansion_mode": partial(_word, words=get_args(ExpansionMode)),
    "new_selector": _DIGIT,
    "exec_timeout": _seconds,
    "intra_pcie_enable": _DIGIT,
    "intra_roce_enable": _DIGIT,
    "inter_hccs_disable": _TRUTH,
    "wire": partial(_word, words=("gloo", "mpi")),
    "device": partial(_word, words=("cpu", "cuda", "npu")),
    "strict": _TRUTH,
    "ruleset": _ruleset,
    "zero_copy": _TRUTH,
}
"""What makes a setting of a text or of a value, by name; a ValueError refuses it."""


@dataclass(frozen=True)
class Config:
    """The settings of a user, with HCCL's names and defaults.

    `buffsize_mb` is the size of CCL_In and of CCL_Out each, in MB of 2^20 bytes. None stands for
    the product's default. `intra_pcie_enable`, `intra_roce_enable` and `inter_hccs_disable` choose
    links (`linked`), `exec_timeout` bounds waits (`wait_seconds`). `wire` carries the
    messages of real processes, which without it share memory inside a host; `device` is that of
    the device platform, by default the accelerator that torch finds. `strict` makes
    selection raise where HCCL would refuse a call or take an executor that is not offered here.
    `new_selector`: costs choose in place of rules on an Ascend 950, for three ops.
    `ruleset` names the release whose tables choose. `zero_copy`: user memory is registered with all
    ranks, which HCCL makes use of on 910_93. A plain class: every process of a job imports it.
    """

    buffsize_mb: int = 200
    algo: str = ""
    deterministic: Literal["false", "true", "strict"] = "false"
    mode: Mode = Mode.OP_BASE
    op_expansion_mode: ExpansionMode | None = None
    new_selector: bool = False
    exec_timeout: int | float | None = None
    intra_pcie_enable: bool | None = None
    intra_roce_enable: bool | None = None
    inter_hccs_disable: bool = False
    wire: Literal["gloo", "mpi"] | None = None
    device: Literal["cpu", "cuda", "npu"] | None = None
    strict: bool = False
    ruleset: RulesetName = DEFAULT_RULESET
    zero_copy: bool = False

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if value is not setting.default:
                read = _read(setting.name, value, f"Setting {setting.name}")
                object.__setattr__(self, setting.name, read)

    @property
    def ccl_bytes(self) -> int:
        """Bytes of each CCL buffer."""
        return self.buffsize_mb << 20

    def expansion(self, product: Product, op: str) -> ExpansionMode:
        """Return the place where an op is expanded to tasks on a product: HOST, AI_CPU, AIV, ..."""
        return expansion_of(self.op_expansion_mode, product.device, op)

    def unfolds(self, product: Product, op: str, *, inline: bool) -> bool:
        """True if the AI CPU makes the tasks of an op on a product; `inline`: links can do its
        reduction, if there is one.
        """
        return unfolds(self.op_expansion_mode, product.device, op, inline=inline)

    def linked(self, topology: Topology) -> Topology:
        """Return a topology with the links that the settings ask for, itself where it has them.

        Without HCCS, RDMA joins the servers of a superpod. RoCE replaces PCIe where one of the two
        settings says so; where neither is set, a topology keeps what it has.
        """
        roce, pcie = self.intra_roce_enable, self.intra_pcie_enable
        return topology.linked(
            inter_hccs=topology.inter_hccs and not self.inter_hccs_disable,
            intra_roce=topology.intra_roce if roce is None and pcie is None else bool(roce),
        )

    def ordered(self, op: OpParam) -> OpParam:
        """Return the call with sums in a fixed order where HCCL_DETERMINISTIC demands it."""
        return replace(op, deterministic=op.reduce is not None and self.deterministic != "false")

    def wait_seconds(self, product: Product) -> float | None:
        """Return the seconds that a wait for a notify may take on a product; None: for ever.

        Whole seconds, rounded up; on old devices ticks of 68 s, rounded down. Vector cores wait for
        hundredths of seconds, and for 1091 s at most.
        """
        seconds = self.exec_timeout
        if product.device in _OLD_DEVICES:
            ticks = int((DEFAULT_TIMEOUT if seconds is None else seconds) // TIMEOUT_TICK)
            return max(ticks, 1) * TIMEOUT_TICK
        if self.expansion(product, "all_gather") in ("AIV", "AIV_ONLY"):
            return min(seconds or AIV_TIMEOUT, AIV_TIMEOUT)
        return math.ceil(DEFAULT_TIMEOUT if seconds is None else seconds) or None

    def check(self, product: Product) -> None:
        """Raise ConfigError for algorithms, modes and time-outs that the product does not take, and
        NotSupportedError where it cannot add in rank order.
        """
        if product.device != "950" and is_executors(self.algo):
            raise _product_error(
                "algo", self.algo, product, _EXPECTED["algo"] + "; executors are for the 950"
            )
        modes = modes_of(product.device)
        if self.op_expansion_mode not in (None, *modes):
            raise _product_error(
                "op_expansion_mode", self.op_expansion_mode, product, " or ".join(modes)
            )
        if self.deterministic == "strict" and product.device in _OLD_DEVICES:
            raise NotSupportedError(
                f"HCCL_DETERMINISTIC is strict, which {product.title} cannot keep.",
                "Expected: false or true; Atlas A2 and later add in rank order. (EI0001)",
            )
        if self.exec_timeout is not None and product.device in _OLD_DEVICES:
            most = MOST_TICKS * TIMEOUT_TICK
            if not 0 < self.exec_timeout <= most:
                raise _product_error(
                    "exec_timeout", self.exec_timeout, product, f"1 to {most} seconds"
                )

    def notes(self, device: str) -> tuple[str, ...]:
        """Return HCCL's warnings about settings on a device, the same for every op."""
        found = [fallback(self.op_expansion_mode, device)]
        seconds = self.exec_timeout
        kernels = expansion_of(self.op_expansion_mode, device, "all_gather") == "AIV"
        if kernels and seconds is not None and not 0 < seconds <= AIV_TIMEOUT:
            found.append(f"HCCL_EXEC_TIMEOUT {seconds} is {AIV_TIMEOUT} s for vector cores")
        if self.intra_pcie_enable is False and self.intra_roce_enable is False:
            found.append("HCCL_INTRA_PCIE_ENABLE and HCCL_INTRA_ROCE_ENABLE are both 0: PCIe is on")
        return tuple(note for note in found if note)

    @staticmethod
    def load(environment: Mapping[str, str] | None = None, **overrides: object) -> Config:
        """Return the settings of the environment; overrides that are not None win.

        Raises ConfigError, which names the variable, its value and what was expected (HCCL's
        EI0001).
        """
        environment = os.environ if environment is None else environment
        given = {name: value for name, value in overrides.items() if value is not None}
        for name in given.keys() - _READERS.keys():
            hint = f"Known settings: {', '.join(_READERS)}. (EI0001)"
            raise ConfigError(f"Setting {name} has the illegal value {given[name]!r}.", hint)
        values = {
            name: _read(name, environment[variable].strip(), f"Environment variable {variable}")
            for name, variable in _VARIABLES.items()
            if variable in environment and name not in given
        }
        if values.get("op_expansion_mode") == "AIV_ONLY":
            raise ConfigError(
                "Environment variable HCCL_OP_EXPANSION_MODE has the illegal value 'AIV_ONLY'.",
                f"Expected: {_EXPECTED['op_expansion_mode']}; AIV_ONLY is for the configuration of "
                "a communicator: expansion_mode. (EI0001)",
            )
        config = Config(**values, **given)  # type: ignore[arg-type]
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
    for value, other, names in ((pcie, roce, ("PCIE", "ROCE")), (roce, pcie, ("ROCE", "PCIE"))):
        if value is False and other is None:
            raise ConfigError(
                f"HCCL_INTRA_{names[0]}_ENABLE is 0 and HCCL_INTRA_{names[1]}_ENABLE is not set.",
                f"Expected: HCCL_INTRA_{names[1]}_ENABLE with it, to say what links the devices. "
                "(EI0001)",
            )


def _product_error(name: str, value: object, product: Product, expected: str) -> ConfigError:
    return ConfigError(
        f"{_VARIABLES[name]} has the illegal value {value!r} for {product.title}.",
        f"Expected: {expected}. (EI0001)",
    )


def _read(name: str, value: object, what: str) -> object:
    """Return a setting's value; ConfigError with `what` has it."""
    try:
        return _READERS[name](value)
    except ValueError:
        hint = f"Expected: {_EXPECTED[name]}. (EI0001)"
        raise ConfigError(f"{what} has the illegal value {value!r}.", hint) from None

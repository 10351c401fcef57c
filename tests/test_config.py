"""Settings from the environment, and what is refused."""

import pytest

from hccl_py.config import Config
from hccl_py.errors import ConfigError, HcclResult


def test_defaults_are_hccl_s() -> None:
    config = Config.load({})
    assert config.ccl_bytes == 200 << 20
    assert (config.deterministic, config.algo) == ("false", "")


def test_the_environment_is_read_and_overridden() -> None:
    environment = {"HCCL_BUFFSIZE": " 7 ", "HCCL_DETERMINISTIC": "TRUE", "UNRELATED": "x"}
    assert Config.load(environment).buffsize_mb == 7
    assert Config.load(environment).deterministic == "true"
    assert Config.load(environment, buffsize_mb=9, deterministic=None).buffsize_mb == 9


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"HCCL_BUFFSIZE": "abc"}, "HCCL_BUFFSIZE has the illegal value 'abc'"),
        ({"HCCL_BUFFSIZE": "0"}, "whole number of MB, 1 to 1048576"),
        ({"HCCL_BUFFSIZE": "1.5"}, "HCCL_BUFFSIZE"),
        ({"HCCL_BUFFSIZE": "9" * 30}, "HCCL_BUFFSIZE"),
        ({"HCCL_DETERMINISTIC": "yes"}, "false, true or strict"),
    ],
)
def test_illegal_values_name_variable_value_and_range(
    environment: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Config.load(environment)
    assert caught.value.result is HcclResult.E_PARA


def test_illegal_arguments_name_the_setting() -> None:
    with pytest.raises(ConfigError, match="Setting buffsize_mb has the illegal value 0"):
        Config.load({"HCCL_BUFFSIZE": "4"}, buffsize_mb=0)
    with pytest.raises(ConfigError, match="Setting mode"):
        Config.load({}, mode="eager")

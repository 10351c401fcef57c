"""A machine of fake NPUs for each test."""

from collections.abc import Iterator

import pytest

from tests.platform.npu.runtime import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    with Machine() as machine:
        yield machine

"""Requests of authors: numbers up to the most that any product has, and fields of every kind."""

from typing import Any

import numpy as np
import pytest

from hccl_py.enums import Buffer
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration.requests import checked_request
from hccl_py.plugins.executor import (
    ChannelRequest,
    ChannelResources,
    PlaneRequest,
    ResourceRequest,
)

MOST = {
    "sub_streams": 16_384,
    "notifies": 65_536,
    "scratch_bytes": 64 << 40,
    "max_count": 4 << 60,
}


@pytest.mark.parametrize("field", MOST)
def test_numbers_end_where_a_product_does(field: str) -> None:
    stated: Any
    for value in (0, 1, MOST[field], np.int64(MOST[field])):
        stated = {field: value}
        found = checked_request(ResourceRequest(**stated))
        assert getattr(found, field) == value
        assert type(getattr(found, field)) is int
    for value in (-1, MOST[field] + 1):
        stated = {field: value}
        with pytest.raises(OrchestrationError) as caught:
            checked_request(ResourceRequest(**stated))
        assert caught.value.message == f"{field} is {value}."
        assert caught.value.hint == f"Give 0 to {MOST[field]}."


@pytest.mark.parametrize("value", [1.0, "1", True, None, [1]])
def test_other_things_are_no_numbers(value: Any) -> None:
    with pytest.raises(OrchestrationError, match="sub_streams is"):
        checked_request(ResourceRequest(sub_streams=value))
    with pytest.raises(OrchestrationError, match="scratch_bytes is"):
        checked_request(ResourceRequest(scratch_bytes=value))


def test_what_is_not_stated_stays_so() -> None:
    found = checked_request(ResourceRequest())
    assert found == ResourceRequest()
    assert isinstance(found, ResourceRequest)
    assert (found.notifies, found.max_count) == (None, None)


@pytest.mark.parametrize(
    ("notifies", "fits"), [(0, True), (4096, True), (-1, False), (4097, False)]
)
def test_notifies_of_a_transport_and_of_a_channel(notifies: int, fits: bool) -> None:
    plane = ResourceRequest((PlaneRequest("flat", "mesh", extra_notifies=notifies),))
    channel = ChannelResources((ChannelRequest(1, notifies=notifies),), (1,))
    for request, what in ((plane, "extra_notifies"), (channel, "the number of notifies")):
        if fits:
            assert checked_request(request) == request
        else:
            with pytest.raises(OrchestrationError, match=what):
                checked_request(request)


@pytest.mark.parametrize(("threads", "fits"), [((), False), ((3,), True), ((1,) * 16_385, False)])
def test_there_is_a_main_thread_and_no_end_of_workers(threads: tuple[int, ...], fits: bool) -> None:
    request = ChannelResources((), threads)
    if fits:
        assert checked_request(request) == request
        return
    with pytest.raises(OrchestrationError, match=rf"threads has {len(threads)} numbers"):
        checked_request(request)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ChannelResources((ChannelRequest(True),), (1,)), "the peer True is no rank"),
        (ChannelResources((ChannelRequest(1, layer=2),), (1,)), "the layer of a channel is 2"),
        (ChannelResources((ChannelRequest(1, layer=-1),), (1,)), "the layer of a channel is -1"),
        (
            ChannelResources((ChannelRequest(1, memory=(Buffer.CCL_IN,)),), (1,)),
            "of a channel is no user memory",
        ),
        (ChannelResources((), (65_537,)), "the number of notifies of thread 0 is 65537"),
        (ResourceRequest((PlaneRequest("flat", "mesh", barrier=1),)), "barrier is 1"),  # type: ignore
        (ResourceRequest((PlaneRequest("flat", "mesh", rdma=None),)), "rdma is None"),  # type: ignore
        (ResourceRequest((PlaneRequest("flat", 3),)), "names no plane or no pattern"),  # type: ignore
        (ResourceRequest((PlaneRequest("flat", "mesh", 7),)), "the memory 7 is none"),  # type: ignore
        (
            ResourceRequest((PlaneRequest("flat", "mesh", output_mem="x"),)),  # type: ignore
            "the memory 'x' is none",
        ),
    ],
)
def test_a_wrong_field_is_named(request_: Any, words: str) -> None:
    with pytest.raises(OrchestrationError, match=words):
        checked_request(request_)


def test_channels_in_plain_numbers() -> None:
    memory = (Buffer.USER_OUT, Buffer.USER_IN, Buffer.USER_OUT)
    request = ChannelResources((ChannelRequest(np.int64(3), 2, 1, memory),), (4, 1), 9)  # type: ignore
    found = checked_request(request)
    assert isinstance(found, ChannelResources)
    (channel,) = found.channels
    assert channel == ChannelRequest(3, 2, 1, memory[:2])
    assert type(channel.peer) is int
    assert (found.threads, found.max_count) == ((4, 1), 9)
    assert checked_request(ChannelResources((ChannelRequest(3),), (1,))).max_count is None

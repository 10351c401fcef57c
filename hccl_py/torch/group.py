"""torch's process group over a communicator.

torch calls some methods from C++ and others from Python only; the names of several changed between
its releases, and both are there.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from hccl_py.errors import HcclError
from hccl_py.plugins.platforms import Mailboxes
from hccl_py.torch import calls
from hccl_py.torch.joining import Member, member_of
from hccl_py.torch.point_to_point import PointToPoint
from hccl_py.torch.queues import TorchQueue
from hccl_py.torch.reductions import TorchReduction, reduction_of
from hccl_py.torch.repeats import TensorCommunicator
from hccl_py.torch.sparse import sparse_all_reduce
from hccl_py.torch.work import JoinedWork, TorchWork, as_torch_error

_SUM = dist.ReduceOp.SUM
CPU = torch.device("cpu")
Tensors = list[torch.Tensor]
Queues = dict[torch.device, TorchQueue]


def create(options: Any, settings: Any) -> ProcessGroup:
    """Make a group from the options that init_process_group or new_group gives to a backend."""
    world = dist.group.WORLD if dist.is_initialized() else None
    known = world.member if isinstance(world, ProcessGroup) else None
    try:
        group = ProcessGroup(member_of(options, settings, known))
        group.open()
        return group
    except Exception as error:
        raise as_torch_error(error) from None


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A group of ranks whose collectives our executors run.

    Collectives run in the order in which they are called; sends and receives between two ranks in
    an order of their own.
    """

    def __init__(self, member: Member) -> None:
        super().__init__(member.rank, member.size)
        self.member = member
        self._queues: Queues = {}
        # The messages know the queues, not the group, which thus ends with its last reference.
        self._messages = PointToPoint(member, partial(_open_mailboxes, self._queues, member))
        self._name = self._description = ""
        self._sequence = 0
        atexit.register(member.shut)

    def open(self) -> None:
        """Meet the group's other processes: all of them do so when torch makes the group."""
        _open_mailboxes(self._queues, self.member)

    # ---- names and numbers ----

    def getBackendName(self) -> str:
        return "hccl_py"

    def rank(self) -> int:
        return self.member.rank

    def size(self) -> int:
        return self.member.size

    getRank, getSize = rank, size

    def _get_backend(self, device: torch.device) -> ProcessGroup:
        """Return this group, which has no other backends in it: torch_npu's gather asks."""
        return self

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    def set_timeout(self, timeout: timedelta) -> None:
        self.member.seconds = timeout.total_seconds()

    def _set_sequence_number_for_group(self) -> None:
        """Numbers count from 0 in every process."""

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def shutdown(self) -> None:
        """Wait for all calls, then release everything; after a failure release it at once."""
        atexit.unregister(self.member.shut)
        if self._messages.has_failed or any(q.has_failed for q in self._queues.values()):
            self.abort()
            return
        self._messages.close()
        for queue in self._queues.values():
            queue.close()
        self.member.is_over.set()

    def __del__(self) -> None:
        """Shut down: torch 2.6 only lets go of the group that destroy_process_group is given."""
        if not (self.member.is_over.is_set() or sys.is_finalizing()):
            self.shutdown()

    def abort(self) -> None:
        """End all running calls, at all ranks, and release everything."""
        self.member.is_over.set()
        self._messages.abort()
        for queue in self._queues.values():
            queue.abort()

    # ---- one tensor at every rank ----

    def broadcast(self, tensors: Tensors, opts: Any = None) -> TorchWork:
        return self._each(calls.broadcast, tensors, opts, root=opts.rootRank)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> TorchWork:
        op = _SUM if opts is None else opts.reduceOp
        if any(tensor.layout is not torch.strided for tensor in tensors):
            return self._each(sparse_all_reduce, tensors, opts, op=op)
        reductions = [_reduction(op, tensor.dtype) for tensor in tensors]

        def call(comm: TensorCommunicator) -> None:
            for tensor, reduction in zip(tensors, reductions, strict=True):
                calls.all_reduce(comm, tensor, reduction)

        return self._submit(call, tensors, opts, tensors)

    def reduce(self, tensors: Tensors, opts: Any) -> TorchWork:
        reduction = _reduction(opts.reduceOp, tensors[0].dtype)
        return self._each(calls.reduce, tensors, opts, reduction=reduction, root=opts.rootRank)

    # ---- parts of several ranks ----

    def allgather(self, outputs: list[Tensors], inputs: Tensors, opts: Any = None) -> TorchWork:
        pairs = list(zip(outputs, inputs, strict=True))
        return self._pairs(calls.all_gather, pairs, outputs, opts)

    def allgather_coalesced(
        self, outputs: list[Tensors], inputs: Tensors, opts: Any = None
    ) -> TorchWork:
        by_input = [[row[i] for row in outputs] for i in range(len(inputs))]
        pairs = list(zip(by_input, inputs, strict=True))
        return self._pairs(calls.all_gather, pairs, outputs, opts)

    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> TorchWork:
        return self._pairs(calls.all_gather_into, [(output, input)], [output], opts)

    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> TorchWork:
        pairs = list(zip(outputs, inputs, strict=True))
        return self._pairs(calls.all_gather_into, pairs, outputs, opts)

    def gather(self, outputs: list[Tensors], inputs: Tensors, opts: Any) -> TorchWork:
        pairs = [(outputs[0] if outputs else [], inputs[0])]
        return self._pairs(calls.gather, pairs, outputs, opts, root=opts.rootRank)

    def scatter(self, outputs: Tensors, inputs: list[Tensors], opts: Any) -> TorchWork:
        pairs = [(outputs[0], inputs[0] if inputs else [])]
        return self._pairs(calls.scatter, pairs, outputs, opts, root=opts.rootRank)

    def reduce_scatter(self, outputs: Tensors, inputs: list[Tensors], opts: Any) -> TorchWork:
        pairs = list(zip(outputs, inputs, strict=True))
        reduction = _reduction(opts.reduceOp, outputs[0].dtype)
        return self._pairs(calls.reduce_scatter, pairs, outputs, opts, reduction=reduction)

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> TorchWork:
        return self.reduce_scatter_single_coalesced([output], [input], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> TorchWork:
        op = _SUM if opts is None else opts.reduceOp
        reduction = _reduction(op, outputs[0].dtype)
        pairs = [(output, [input]) for output, input in zip(outputs, inputs, strict=True)]
        return self._pairs(calls.reduce_scatter, pairs, outputs, opts, reduction=reduction)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> TorchWork:
        return self._pairs(calls.all_to_all, [(outputs, inputs)], outputs, opts)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> TorchWork:
        if not output_splits and not input_splits:
            return self._pairs(calls.all_to_all_evenly, [(output, input)], [output], opts)
        parts = (
            _split(output, output_splits, self.size()),
            _split(input, input_splits, self.size()),
        )
        return self._pairs(calls.all_to_all, [parts], [output], opts)

    def barrier(self, opts: Any = None) -> TorchWork:
        """Hold every rank until all have made the call, and all calls on devices have ended."""
        for device, queue in self._queues.items():
            if device != CPU:
                self._submit_to(queue, TensorCommunicator.synchronize, [], in_background=False)
        return self._submit(calls.barrier, [], opts, [])

    # ---- messages ----

    def send(self, tensors: Tensors, destination: int, tag: int) -> TorchWork:
        return self._messages.send(tensors[0], destination, tag)

    def recv(self, tensors: Tensors, source: int, tag: int) -> TorchWork:
        return self._messages.recv(tensors[0], source, tag)

    def recv_anysource(self, tensors: Tensors, tag: int) -> TorchWork:
        return self._messages.recv_any(tensors[0], tag)

    def batch_isend_irecv(
        self, kinds: Sequence[str], tensors: Tensors, ranks: Sequence[int]
    ) -> JoinedWork:
        """Make several sends and receives at once: what torch_npu asks of its groups."""
        made = {"isend": self.send, "irecv": self.recv}
        calls = zip(kinds, tensors, ranks, strict=True)
        return JoinedWork([made[kind]([tensor], rank, 0) for kind, tensor, rank in calls])

    # ---- names of torch before 2.13 ----

    allreduce_coalesced = allreduce
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    def _each(
        self, function: Callable[..., None], tensors: Tensors, opts: Any, **more: Any
    ) -> TorchWork:
        """Submit one call of a function for each tensor."""

        def call(comm: TensorCommunicator) -> None:
            for tensor in tensors:
                function(comm, tensor, **more)

        return self._submit(call, tensors, opts, tensors)

    def _pairs(
        self,
        function: Callable[..., None],
        pairs: Sequence[tuple[Any, Any]],
        result: Any,
        opts: Any,
        **more: Any,
    ) -> TorchWork:
        """Submit one call of a function for each pair of outputs and inputs."""

        def call(comm: TensorCommunicator) -> None:
            for output, input in pairs:
                function(comm, output, input, **more)

        return self._submit(call, result, opts, pairs)

    def _submit(
        self, call: Callable[[TensorCommunicator], None], result: Any, opts: Any, tensors: Any
    ) -> TorchWork:
        """Submit a call, to the queue of the device on which its tensors are.

        What devices do is enqueued in the caller's thread, where its streams are, and then the call
        has ended for torch: what the caller enqueues next comes after it.
        """
        device = device_in(tensors) or CPU
        is_async = device == CPU and getattr(opts, "asyncOp", True)
        return self._submit_to(
            _queue_of(self._queues, self.member, device), call, result, in_background=is_async
        )

    def _submit_to(
        self,
        queue: TorchQueue,
        call: Callable[[TensorCommunicator], None],
        result: Any,
        *,
        in_background: bool,
    ) -> TorchWork:
        self._sequence += 1
        return queue.submit(call, TorchWork(result), in_background=in_background)


def _queue_of(queues: Queues, member: Member, device: torch.device) -> TorchQueue:
    """Return the queue of a device, which is opened with its first call."""
    if device not in queues:
        name = f"hccl_py-{member.name}"
        queues[device] = TorchQueue(name, partial(member.communicator, device))
    return queues[device]


def _open_mailboxes(queues: Queues, member: Member) -> Mailboxes | None:
    return _queue_of(queues, member, CPU).open().open_mailboxes()


def device_in(tensors: Any) -> torch.device | None:
    """Return the device of the first tensor in lists of lists; None where there is none."""
    if isinstance(tensors, torch.Tensor):
        return tensors.device
    if not isinstance(tensors, (list, tuple)):
        return None
    found = (device_in(each) for each in tensors)
    return next((device for device in found if device is not None), None)


def _reduction(op: Any, dtype: torch.dtype) -> TorchReduction:
    """Return the reduction of torch's reduce op for a type, or raise torch's class of error."""
    try:
        return reduction_of(op, dtype)
    except HcclError as error:
        raise as_torch_error(error) from None


def _split(tensor: torch.Tensor, sizes: Sequence[int], ranks: int) -> Tensors:
    """Return a tensor's rows for each rank; no sizes: as many for each."""
    even = [tensor.shape[0] // ranks] * ranks
    return list(torch.split(tensor, list(sizes) or even))

"""HCCL's small all-reduce of A3, written from its source, as one rank runs it, on main alone.

The file is libochao-huawei/hcomm @ 8958adb, src/legacy/ascend910/algorithm/base/alg_template/
temp_all_reduce/all_reduce_hd_optim.cc; its executor always passes `aicpu`.
"""

from tests.executors.fidelity.transports import Member, Slice


def hd_optim(me: Member, whole: Slice) -> None:
    """:92 RunAsync; slots as large as the data are one behind the other in outputMem_."""
    size = whole.size
    steps = me.size.bit_length() - 1
    power = 1 << steps
    _before(me, size, power)
    if me.rank < power:
        _steps(me, size, steps, power)
    if power != me.size:
        _after(me, size, steps, power)


def _before(me: Member, size: int, power: int) -> None:
    """:145 RunPreCopy."""
    neighbour = me.rank ^ power
    if power == me.size or neighbour >= me.size:
        return
    link = me.link(neighbour)
    if me.rank >= power:
        link.rx_ack()
        link.move("write_reduce", 0, 0, size)
        link.tx_data_signal()
    else:
        link.tx_ack()
        link.rx_data_signal()


def _steps(me: Member, size: int, steps: int, power: int) -> None:
    """:227 RunAllReduceHDOptim and :187 RunBetweenStep."""
    is_power = power == me.size
    link = me.link(me.rank ^ 1)
    link.tx_ack()
    link.rx_ack()
    for step in range(1, steps + 1):
        to = step * size if step != steps or not is_power else 0
        if step == 1 and is_power:
            link.move("write_reduce", 0, size, size)
        else:
            link.move("read_reduce", (step - 1) * size, to, size)
        if step != steps:
            link.tx_data_signal()
            link.rx_data_signal()
            link = me.link(me.rank ^ 1 << step)
            link.tx_ack()
            link.rx_ack()
    link.tx_data_signal()
    link.rx_data_signal()


def _after(me: Member, size: int, steps: int, power: int) -> None:
    """:272 RunFinalStep."""
    neighbour = me.rank ^ power
    if neighbour >= me.size:
        return
    link = me.link(neighbour)
    if me.rank < power:
        link.tx_ack()
        link.rx_data_signal()
    else:
        link.rx_ack()
        link.move("read", steps * size, 0, size)
        link.tx_data_signal()

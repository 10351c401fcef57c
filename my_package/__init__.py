from hccl_py.executor import Mode, PlaneRequest, ResourceRequest, require


class AllGatherTurns:
    """Every rank reads one peer after the other."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op, topology):
        return require(
            (topology.is_single_server, "needs one server"),
            (topology.size <= 4, "takes 4 ranks at most"),
            (op.mode is Mode.OP_BASE, "works through CCL buffers"),
        )

    def resources(self, op, rank):
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op, rank):
        main, mine = rank.main, rank.ccl_in.head(rank.user_in.size)
        main.copy(mine, rank.user_in)
        main.copy(rank.user_out[rank.id], mine)
        for k in range(1, rank.size):
            reader, peer = (rank.id + k) % rank.size, (rank.id - k) % rank.size
            rank.flat[reader].tx_ack(main)  # my data is there: read it
            rank.flat[peer].rx_ack(main)
            main.copy(rank.user_out[peer], rank.flat[peer].remote(mine))
            rank.flat[peer].tx_data_signal(main)  # I have read yours
            rank.flat[reader].rx_data_signal(main)


class AllGatherHasty(AllGatherTurns):
    """The same without asking whether the data is there."""

    def orchestrate(self, op, rank):
        main, mine = rank.main, rank.ccl_in.head(rank.user_in.size)
        main.copy(mine, rank.user_in)
        main.copy(rank.user_out[rank.id], mine)
        for k in range(1, rank.size):
            peer = (rank.id - k) % rank.size
            main.copy(rank.user_out[peer], rank.flat[peer].remote(mine))


EXECUTORS = (AllGatherTurns, AllGatherHasty)

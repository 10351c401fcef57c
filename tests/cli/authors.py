"""Files with executors, as authors have them, for tests."""

AUTHOR = '''
from hccl_py.plugins.executor import PlaneRequest, ResourceRequest


class Right:
    """AllGather over the mesh of all ranks."""

    op = "all_gather"
    algorithm = "level0:mesh"

    def suits(self, op, topology):
        return True

    def resources(self, op, rank):
        return ResourceRequest(planes=(PlaneRequest("flat", "mesh"),), sub_streams=rank.size - 1)

    def orchestrate(self, op, rank):
        staged = rank.ccl_out.head(rank.user_in.size)
        rank.main.copy(staged, rank.user_in)
        with rank.flat.fork() as subs:
            rank.main.copy(rank.user_out[rank.id], staged)
            for sub, peer, link in subs:
                link.tx_ack(sub)
                link.rx_ack(sub)
                sub.copy(rank.user_out[self.slot(peer, rank.size)], link.remote(staged))
                link.tx_data_signal(sub)
                link.rx_data_signal(sub)

    def slot(self, peer, size):
        return peer


class Rotated(Right):
    """Puts what it reads into the next slot."""

    def slot(self, peer, size):
        return (peer + 1) % size


class Idle(Right):
    """Does nothing at all."""

    def resources(self, op, rank):
        return ResourceRequest()

    def orchestrate(self, op, rank):
        pass


class Stuck(Right):
    """Waits for Acks that nobody posts."""

    def orchestrate(self, op, rank):
        with rank.flat.fork() as subs:
            for sub, peer, link in subs:
                link.rx_ack(sub)


class Misspelt(Right):
    """Uses a name that is not there."""

    def orchestrate(self, op, rank):
        rank.man.copy(rank.user_out, rank.user_in)
'''

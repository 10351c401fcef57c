"""AllGather on four NPUs of one server: what runs, why, and what it needs."""

import numpy as np

import hccl_py as hccl

comm = hccl.Communicator(ranks=4)
result = comm.all_gather([np.full(5, r + 1.0, np.float32) for r in range(4)])

print("every rank has", result.outputs[0])
print("executor:", result.selection.executor, "because", ", ".join(result.selection.reasons))
print("not taken:")
for rejected in result.selection.rejected:
    print(f"  {rejected.executor}: {rejected.reason}")

program = result.program
print("tasks per rank:", program.task_count // program.ranks)
print("sub streams per rank:", program.declared.sub_streams.tolist())
print("notifies per rank:", program.declared.notifies.tolist())
print("transports per rank:", program.transports.counts(program.ranks).tolist())
comm.close()

"""`hccl-py run`: execute an op on real data and check the result, in hccl_test's columns."""

from __future__ import annotations

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions, Saving, Sizes
from hccl_py.cli.run_options import Interleaving, Measuring


@grouped
def command(
    *,
    call: ProgramOptions,
    sizes: Sizes,
    measuring: Measuring,
    interleaving: Interleaving,
    saving: Saving,
    output: Output,
) -> int | None:
    """Run an op on real data and check every element of the result.

    One row per size from -b to -e, in hccl_test's columns. The times are wall time of the platform;
    on the emulated one they say how fast this machine emulates, not how fast NPUs are. There --slow
    gives a straggler fewer turns, which changes the order of tasks, and no time. In the place of an
    op, a program file is run on data made up for its op.
    """
    from hccl_py.cli.call import save_program
    from hccl_py.cli.errors import status_of
    from hccl_py.cli.run_report import report
    from hccl_py.cli.runs import Runs

    runs = Runs.of(call, sizes, measuring, interleaving)
    if saving.save is not None:
        runs.check_save(saving.save)
    if measuring.timeline is not None:
        runs.check_timeline(measuring.timeline)
    with runs.request.comm as comm:
        save_program(runs.prepare(), saving.save)
        status = comm.launch(lambda: status_of(lambda: report(runs, output), debug=output.debug))
        if status is None:
            report(runs, output)
        return status

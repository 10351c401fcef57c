"""The smoke tests: `pytest -m smoke`."""

SMOKE = (
    *(
        "call/test_algo.py",
        "communicator/test_arrays.py",
        "communicator/test_communicator.py",
        "call/test_config.py",
        "communicator/test_data.py",
    ),
    *("interop/chakra/test_order.py", "interop/checker_logs/test_operation.py"),
    *("cli/test_errors.py", "cli/test_listing.py"),
    *(
        "communicator/collectives/test_equal.py",
        "communicator/collectives/test_messages.py",
        "documents/test_kind.py",
    ),
    "interop/cpp/test_project.py",
    *("executors/all_reduce/test_mesh_loops.py", "executors/send_recv/test_send.py"),
    *("importers/test_importers.py", "plugins/test_discovery.py"),
    "clocks/test_cost_files.py",
    "fit/test_nccl_tests_log.py",
    *("formats/test_calls.py", "formats/test_load_save.py", "jobs/test_pieces.py"),
    *("jobs/test_events.py", "operators/test_operators.py", "operators/test_parts.py"),
    *("interop/msccl/test_xml_text.py", "interop/mscclpp/test_json_text.py"),
    *("orchestration/test_author_errors.py", "orchestration/test_record.py"),
    *("orchestration/test_region.py", "orchestration/test_stream.py"),
    *("orchestration/test_values.py", "platform/test_scheduler.py", "program/test_edit.py"),
    *("program/test_matching.py", "scaffold/test_project.py", "selection/test_select.py"),
    *(
        "simulator/test_entry.py",
        "simulator/test_demands.py",
        "testing/test_mutation.py",
        "language/test_translator.py",
        "numerics/test_sum_trees.py",
    ),
    *("topology/test_networks_cuts.py", "topology/test_topology.py"),
    *("torch/test_registration.py", "trace/test_side_by_side.py"),
    *("trace/test_terminal.py", "tuning/test_candidates.py", "tuning/test_table.py"),
    *("verifier/test_deadlocks.py", "verifier/test_memory.py", "verifier/test_notifies.py"),
    *("verifier/test_races.py", "verifier/test_undefined.py"),
)
"""Files with quick tests of every part; they need no compiled code."""

"""HCCL's executors of the Ascend 950 that the AICPU expands (engine AICPU_TS), on channels.

One file per template (HCCL's `InsTemp...`), and one per kind of executor, with a row for every name
that HCCL registers: sole.py runs one template over all ranks, parallel.py two at a time on parts
of the data, sequence.py one after the other. pair_messages.py sends messages, without a template.
"""

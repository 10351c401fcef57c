"""Executors of the all_to_all family.

HCCL first gathers the counts and displacements of all ranks before an AlltoAllV. Here a call has
those of all ranks, so no task is needed for that.
"""

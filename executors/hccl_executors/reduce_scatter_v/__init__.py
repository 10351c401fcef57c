"""Executors of ReduceScatterV, one per file."""

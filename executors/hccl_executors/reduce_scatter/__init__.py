"""Executors of ReduceScatter, one per file."""

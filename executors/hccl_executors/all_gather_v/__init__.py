"""Executors of AllGatherV, one per file."""

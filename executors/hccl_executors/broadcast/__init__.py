"""Executors of Broadcast, one per file."""

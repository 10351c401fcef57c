"""AllGather executors."""

"""AllReduce executors."""

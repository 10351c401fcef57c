"""SendRecv executors."""

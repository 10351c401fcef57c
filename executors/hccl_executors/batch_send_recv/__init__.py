"""BatchSendRecv executors."""

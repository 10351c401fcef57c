"""Readers of what hccl_test, nccl-tests and rccl-tests print."""

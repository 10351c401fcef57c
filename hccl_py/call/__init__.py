"""Calls as users describe them: facts of ops, parameters of a call, settings, HCCL_ALGO."""

"""What a user asks: ops as data, one call's parameters, settings, HCCL_ALGO."""

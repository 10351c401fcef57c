"""Executors as custom ops whose kernels are the CCU's: one kernel for each die and phase."""

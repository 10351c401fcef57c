"""Checks: one file per group of findings."""

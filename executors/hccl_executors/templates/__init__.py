"""Algorithms on one plane: functions of (stream, plane, chunks) that executors compose."""

"""Processes of one rank each: their numbers, the values they share before they can communicate, and
their start and end.
"""

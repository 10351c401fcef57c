"""A process for every rank: who this one is, what they share before they can communicate, and how
they are started and ended together.
"""

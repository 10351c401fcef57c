"""Contracts of what plugins provide, and how installed plugins are found."""

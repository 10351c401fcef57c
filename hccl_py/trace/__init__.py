"""Traces: what was put on every stream, with model times; as JSON, or drawn in the terminal."""

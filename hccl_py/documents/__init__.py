"""JSON documents from outside: read within limits, checked, and refused in one sentence."""

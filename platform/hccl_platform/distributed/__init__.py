"""The distributed platform: every rank is a process of its own."""

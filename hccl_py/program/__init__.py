"""The recorded program: batches of instructions, the walk that gives it meaning, files."""

"""From a recorded program to the tasks of a platform: its moves, and one rank's part of it."""

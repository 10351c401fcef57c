"""From a recorded program to what a platform executes: its moves, and one rank's part of it."""

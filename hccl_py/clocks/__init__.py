"""Cost models of machines: what a task takes on which link."""

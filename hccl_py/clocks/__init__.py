"""Cost models of machines: the time of a task over each sort of link."""

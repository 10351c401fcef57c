"""Running a call: the communicator, its groups, plans, arrays and measurement."""

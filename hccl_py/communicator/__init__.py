"""How a call runs: the communicator, its groups, plans, arrays and measurement."""

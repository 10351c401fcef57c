"""Cost models fitted to measured times."""

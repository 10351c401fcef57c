"""Facts about a program that checks stand on: memory, order, contents, meaning."""

"""What is true of a program, before anything is judged: memory, order, contents, meaning."""

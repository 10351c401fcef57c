"""One file per group of findings: from what is known of a program to what is wrong with it."""

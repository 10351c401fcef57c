"""Programs of other kinds: C++ custom operators, MSCCL, mscclpp, checker logs, Chakra."""

"""`python -m hccl_py` is the command `hccl-py`."""

import sys

from hccl_py.cli import main

if __name__ == "__main__":
    sys.exit(main())

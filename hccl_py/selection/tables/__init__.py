"""HCCL's decision tables, one package per release, one module per device.

`rulesets.py` says which repository and commit each is from; every row names its file and lines.
"""

HCCL_170DDEE = "hccl-170ddee"
"""The ruleset of hccl after August 2026, of which a part of the cost table is known."""

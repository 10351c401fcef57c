"""HCCL's decision tables, one package per release, one module per device.

`rulesets.py` says which repository and commit each is from; every row names its file and lines.
"""

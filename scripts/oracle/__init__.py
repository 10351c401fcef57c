"""HCCL's own algorithm code as the judge of what is recorded here; README.md says how."""

"""Names that a shell completes; what they are is looked up only when somebody presses Tab."""


def ops() -> list[str]:
    """Return the names of all ops."""
    from hccl_py.operators import OPERATORS

    return sorted(OPERATORS)


def executors() -> list[str]:
    """Return the names of all installed executors."""
    from hccl_py.plugins.discovery import installed_executors

    return sorted(installed_executors().executors)


def topologies() -> list[str]:
    """Return the names of all products."""
    from hccl_py.topology import PRESETS

    return sorted(PRESETS)

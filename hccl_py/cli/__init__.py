"""The command `hccl-py`, one file per command.

Exit status: 0 fine, 1 a result was wrong, 2 bad usage or input, 3 a defect of hccl-py itself, 130
interrupted. Nothing heavy is imported before a command runs: a command's file declares what it
takes, and its body imports what does the work. `hccl-py COMMAND --help` needs typer only.
"""

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process; return the exit status."""
    import sys

    from hccl_py.cli.app import app
    from hccl_py.cli.errors import guarded
    from hccl_py.cli.streams import own_streams, speak_as_asked
    from hccl_py.language import speaking

    given = list(sys.argv[1:] if arguments is None else arguments)

    def command() -> object:
        speak_as_asked()
        return app(given, prog_name="hccl-py", standalone_mode=False)

    with own_streams(for_good=arguments is None), speaking("en"):
        return guarded(
            command,
            debug="--debug" in given,
            as_json="--json" in given,
        )

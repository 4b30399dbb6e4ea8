"""The command line as a user calls it."""

import pytest

from capedit.cli import main


def run(*arguments: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    code = end.value.code
    return code if isinstance(code, int) else 0

"""The command line as a user calls it."""

import json
from typing import Any

import pytest

from capedit.cli import main


def run(*arguments: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    code = end.value.code
    return code if isinstance(code, int) else 0


def run_json(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    """What a command prints for machines."""
    assert run(*arguments, "--json") == code
    return json.loads(capsys.readouterr().out)

"""One small model for all tests of a session; each library gets one thread."""

import pytest

from capedit.pipeline import Treatment
from tests.pipeline.world import make_treatment


@pytest.fixture(scope="session")
def treatment(tmp_path_factory: pytest.TempPathFactory) -> Treatment:
    return make_treatment(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def _fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of different runs are compared byte for byte, times included."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def model_options(treatment: Treatment) -> list[str]:
    """The same on the command line."""
    return ["--model", treatment.model, "--encoder", treatment.encoder]

"""Refusals, for rooms behind the door that know nothing of HTTP libraries."""

from capedit.errors import CapeditError


class Refusal(CapeditError):  # noqa: N818 (it is an answer, not a mishap)
    """A request that is not served, with the HTTP status that says so."""

    def __init__(
        self, status: int, detail: str, *, field: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field, self.headers = status, detail, field, headers


def busy(detail: str, *, status: int = 429) -> Refusal:
    """The client may try again."""
    return Refusal(status, detail, headers={"Retry-After": "1"})

"""What a server allows: how much, for how long, and to whom."""

from dataclasses import dataclass
from ipaddress import ip_address

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class Limits:
    """Bounds on what a client can ask for. Memory is bounded by `waiting` x `body_bytes` at worst."""

    body_bytes: int = 16 * 2**20
    """Of a request; a batch of images in JSON counts as one."""
    pixels: int = 32_000_000
    """Of an image, decoded."""
    caption_chars: int = 2_000
    batch: int = 64
    """Captions in one request."""
    waiting: int = 128
    """Captions in the house at once, those being edited included; beyond it the answer is 429."""
    seconds: float = 30.0
    """For an answer."""
    upload_seconds: float = 30.0
    """For the body of a request to arrive."""
    shutdown_seconds: int = 10
    """For answers under way when the server is told to stop."""
    remembered: int = 128
    """Images whose features are kept, so that another caption or another knob costs no encoding."""
    computed_together: int = 16
    """Captions or images in one batch of the networks."""


@dataclass(frozen=True)
class Access:
    """Who may talk to a server."""

    token: str | None = None
    """What callers must know, as a bearer token or by signing in on the page."""
    hosts: frozenset[str] | None = LOOPBACK_NAMES
    """Names by which the server may be addressed, without port, so that no page elsewhere can rename itself into it;
    None is any."""


def is_loopback(host: str) -> bool:
    """Whether a server bound to this address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False

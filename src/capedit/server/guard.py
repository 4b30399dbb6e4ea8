"""What stands before every route: names, origins, tokens, sizes, and headers that keep the page to itself."""

import hmac
import time
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capedit.server.metrics import Metrics
from capedit.server.problems import problem_response
from capedit.server.refusal import Refusal
from capedit.server.settings import Access

_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
OPEN = ("/api/v1/health", "/api/v1/session")
"""What needs no token; nor do the files of the page, which hold nothing but code."""
_OPEN_BYTES = 8192
"""Of a request to these: strangers have no use for more."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Refuses what does not belong here before any route sees it."""

    def __init__(self, app: ASGIApp, *, access: Access, body_bytes: int, metrics: Metrics) -> None:
        self.app, self.access, self.body_bytes, self.metrics = app, access, body_bytes, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, send_guarded)
                return
            await self.app(scope, self._bounded(receive, self._most(scope)), send_guarded)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            # Labels must not grow with what is sent.
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - started)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.access.hosts is not None and hostname(host) not in self.access.hosts:
            return problem_response(421, f"this server is not {host!r}; start it with --allow-host to serve that name")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return problem_response(403, "requests from pages of other origins are refused")
        if self.access.token is not None and self._is_private(scope) and not self._knows_token(headers):
            return problem_response(401, "a token is needed", headers={"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._most(scope):
            return problem_response(413, _too_large(self._most(scope)))
        return None

    def _most(self, scope: Scope) -> int:
        """Bytes of a request to this path."""
        return min(_OPEN_BYTES, self.body_bytes) if scope["path"] in OPEN else self.body_bytes

    @staticmethod
    def _is_private(scope: Scope) -> bool:
        path = scope["path"]
        return (path.startswith("/api/") or path == "/metrics") and path not in OPEN

    def _knows_token(self, headers: Headers) -> bool:
        token = self.access.token or ""
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(cookie_name(token))
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), session_secret(token).encode())

    @staticmethod
    def _bounded(receive: Receive, most: int) -> Receive:
        """The body, cut off where it grows beyond the limit whatever its headers said."""
        came = 0

        async def bounded() -> Message:
            nonlocal came
            message = await receive()
            came += len(message.get("body", b""))
            if came > most:
                raise Refusal(413, _too_large(most))
            return message

        return bounded


def session_secret(token: str) -> str:
    """What a signed-in browser shows instead of the token: of no use to log in elsewhere."""
    return hmac.new(token.encode(), b"capedit session", sha256).hexdigest()


def cookie_name(token: str) -> str:
    """One for each token: browsers show a cookie to all ports of a machine, and several servers may run on it."""
    return f"capedit_{hmac.new(token.encode(), b'capedit cookie', sha256).hexdigest()[:12]}"


def hostname(netloc: str) -> str:
    """The name of a Host header without its port, in lower case; a v6 address keeps its brackets."""
    name, colon, port = netloc.lower().rpartition(":")
    return name if colon and port.isdecimal() and not name.endswith(":") else netloc.lower()


def _too_large(most: int) -> str:
    return f"the request is larger than {most:,} bytes"

"""Running an app: bind, tell where, serve, and stop without cutting anyone off."""

import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from secrets import token_urlsafe

import uvicorn
from fastapi import FastAPI

from capedit.errors import CapeditError
from capedit.server.settings import LOOPBACK_NAMES, Access, Limits, is_loopback

_CONNECTIONS = 1024  # each costs a little memory, whether it asks for something or not


def access_for(host: str, token: str | None = None, allowed: tuple[str, ...] = ()) -> Access:
    """Who may talk to a server bound to `host`: beyond this machine only those who know a token, made up if need be.

    A server with a token answers to any name, as no page elsewhere can make a browser show a token that is not its own.
    """
    if token is None and not is_loopback(host):
        token = token_urlsafe(24)
    if token is not None:
        return Access(token, None)
    return Access(None, LOOPBACK_NAMES | {name.lower() for name in allowed} | {bracketed(host)})


def serve(app: FastAPI, host: str, port: int, limits: Limits, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; `ready` gets the address once there is one."""
    listening = bind(host, port)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=limits.shutdown_seconds,
        limit_concurrency=_CONNECTIONS,
        proxy_headers=False,
    )
    with listening:
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        ready(f"http://{bracketed(shown)}:{listening.getsockname()[1]}/")
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return  # how people stop a server


def open_browser(address: str) -> bool:
    """Show an address in the user's browser, where there is a screen to show it on."""
    on_screen = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    return on_screen and webbrowser.open(address)


def bracketed(host: str) -> str:
    """As it stands in an address."""
    return f"[{host}]" if ":" in host else host


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 means any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=2048)
        # Connections inherit it. Without, an answer waits 40 ms for word from the client that its head has come.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except OSError as error:
        raise CapeditError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error

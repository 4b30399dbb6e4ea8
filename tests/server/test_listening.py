"""The socket that the service listens on."""

import socket

import pytest

from capedit.errors import CapeditError
from capedit.server.run import bind


def test_answers_are_sent_at_once() -> None:
    with bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_named() -> None:
    with bind("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(CapeditError, match=rf"cannot listen on 127.0.0.1 port {port}"):
            bind("127.0.0.1", port)

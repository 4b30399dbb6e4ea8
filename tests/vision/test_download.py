import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from PIL import Image

from capedit.vision.image import ImageError, load_image


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/gone.png":
            self.send_error(404)
            return
        buffer = io.BytesIO()
        Image.new("RGB", (8, 6), "red").save(buffer, "PNG")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(buffer.getvalue())
        if self.path == "/endless.png":
            try:
                while True:
                    self.wfile.write(bytes(2**16))
            except OSError:
                pass

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download(address: str) -> None:
    assert load_image(f"{address}/red.png", allow_url=True).size == (8, 6)


def test_a_download_without_end_is_cut_off(address: str) -> None:
    with pytest.raises(ImageError, match="beyond 1,000,000 bytes"):
        load_image(f"{address}/endless.png", allow_url=True, max_bytes=1_000_000)


def test_a_download_that_fails_says_why(address: str) -> None:
    with pytest.raises(ImageError, match=r"gone\.png: download failed \(Not Found\)"):
        load_image(f"{address}/gone.png", allow_url=True)

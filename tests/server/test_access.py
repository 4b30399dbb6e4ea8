"""Who may talk to a server, and what its pages may do."""

import pytest
from fastapi.testclient import TestClient

from capedit.editing import Editor
from capedit.server.app import service_app
from capedit.server.guard import hostname
from capedit.server.run import access_for
from tests.server.conftest import BASE


@pytest.fixture
def guarded(editor: Editor) -> TestClient:
    access = access_for("0.0.0.0", "sesame")
    return TestClient(service_app(editor, examples=[], access=access), base_url=BASE)


def test_without_the_token_nothing_but_the_empty_page(guarded: TestClient) -> None:
    for path in ("/api/v1/model", "/api/v1/examples", "/metrics", "/api/v1/openapi.json", "/api/v1/nothing"):
        answer = guarded.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
    assert guarded.get("/").status_code == 200
    assert guarded.get("/api/v1/health").status_code == 200
    for header in ("Bearer wrong", "Bearer", "Basic sesame", "sesame", "Bearer sesame2"):
        assert guarded.get("/api/v1/model", headers={"Authorization": header}).status_code == 401
    assert guarded.get("/api/v1/model", headers={"Cookie": "capedit_session=sesame"}).status_code == 401


def test_the_token_opens(guarded: TestClient) -> None:
    assert guarded.get("/api/v1/model", headers={"Authorization": "Bearer sesame"}).status_code == 200
    assert guarded.post("/api/v1/session", json={"token": "no"}).status_code == 401
    answer = guarded.post("/api/v1/session", json={"token": "sesame"})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "sesame" not in cookie
    assert guarded.get("/api/v1/model").status_code == 200  # the client keeps the cookie


def test_beyond_this_machine_a_token_is_made_up() -> None:
    assert access_for("127.0.0.1").token is None
    assert access_for("localhost").token is None
    assert access_for("::1").token is None
    made = access_for("0.0.0.0").token
    assert made is not None
    assert len(made) >= 30
    assert access_for("192.168.1.5").token not in (None, made)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil:80", "[::2]:80"])
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    """A page elsewhere may make its name lead to this machine; it cannot change the Host that its browser sends."""
    assert client.get("/api/v1/model", headers={"Host": host}).status_code == 421


def test_the_names_of_this_machine() -> None:
    assert hostname("127.0.0.1:8765") == "127.0.0.1"
    assert hostname("LocalHost") == "localhost"
    assert hostname("[::1]:99") == "[::1]"
    assert hostname("[::1]") == "[::1]"
    assert "capedit.lan" in (access_for("127.0.0.1", None, ("capedit.lan",)).hosts or ())


def test_pages_of_other_origins_are_refused(client: TestClient) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        assert client.post("/api/v1/edit", headers={"Origin": origin}).status_code == 403
    own = client.post("/api/v1/edit", headers={"Origin": BASE}, json={})
    assert own.status_code == 422
    assert "access-control-allow-origin" not in own.headers
    assert client.options("/api/v1/edit", headers={"Origin": "https://evil.example"}).status_code == 403


def test_every_answer_is_strict(client: TestClient) -> None:
    for path in ("/", "/api/v1/model", "/nothing", "/api/v1/edit"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http:" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/%2e%2e/app.py",
        "/assets/....//app.py",
        "/assets/%2fetc%2fpasswd",
        "/..%5c..%5cetc",
        "/assets/.",
        "/index.html%00",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert b"root:" not in answer.content
    assert b"import" not in answer.content


def test_addresses_are_never_fetched(client: TestClient) -> None:
    for image in ("http://127.0.0.1:1/x.png", "file:///etc/passwd", "/etc/passwd"):
        assert client.post("/api/v1/edit", json={"image": image, "caption": "a dog"}).status_code == 422
        assert client.post("/api/v1/edit", data={"image": image, "caption": "a dog"}).status_code == 422

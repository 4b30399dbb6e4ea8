"""The routes of the service, as a client sees them."""

import json
from base64 import b64encode
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from fastapi.testclient import TestClient

from capedit.data import Instance, write_dataset
from capedit.data.images import ImageFile
from capedit.editing import Bundle, Editor, Runtime
from capedit.editing.editor import load_modules
from capedit.editing.gaze import CONTRAST, gaze
from capedit.models.decoding import frame
from capedit.server.examples import examples_from
from capedit.vision import VisualTokens
from tests.editing.tiny import MeanColours, tiny_config, write_tiny_model
from tests.server.conftest import picture

CAPTION = "A dog is on the sofa."


def send(client: TestClient, caption: str = CAPTION, image: bytes | None = None, **fields: str) -> dict[str, object]:
    files = {"image": ("photo.png", picture() if image is None else image)}
    answer = client.post("/api/v1/edit", files=files, data={"caption": caption, **fields})
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


def test_an_edit_over_http_is_the_editors_own(client: TestClient, editor: Editor) -> None:
    told = send(client, keep_bias="0.5", rounds="2")
    own = editor.edit(picture(), CAPTION, keep_bias=0.5, rounds=2)
    assert told["caption"] == own.caption
    assert told["trace"] == json.loads(json.dumps(own.to_json()["trace"]))
    assert told["model"] == editor.model


def test_a_form_base64_and_an_id_give_the_same(client: TestClient) -> None:
    by_form = send(client)
    by_json = client.post("/api/v1/edit", json={"image": b64encode(picture()).decode(), "caption": CAPTION}).json()
    by_id = client.post("/api/v1/edit", json={"image_id": by_form["image_id"], "caption": CAPTION}).json()
    by_form_id = client.post("/api/v1/edit", data={"image_id": by_form["image_id"], "caption": CAPTION}).json()
    assert by_form == by_json == by_id == by_form_id


def test_knobs_reach_the_editor(client: TestClient) -> None:
    free = send(client, fluent="false")
    assert any(operation["op"] == "DELETE" for operation in free["operations"])  # type: ignore[attr-defined]
    assert send(client, max_edits="0")["caption"] == CAPTION
    assert "dog" in str(send(client, protected="DOG")["caption"]).lower()


def test_a_batch_tells_of_each_caption(client: TestClient) -> None:
    known = send(client)["image_id"]
    items = [
        {"image_id": known, "caption": CAPTION},
        {"image": b64encode(picture(2)).decode(), "caption": "two women"},
        {"image_id": "0" * 64, "caption": CAPTION},
        {"image": b64encode(b"no image").decode(), "caption": CAPTION},
        {"image_id": known, "caption": "..."},
    ]
    results = client.post("/api/v1/edits", json={"items": items, "knobs": {"rounds": 2}}).json()["results"]
    assert ["edit" in result for result in results] == [True, True, False, False, False]
    assert [result["error"]["status"] for result in results[2:]] == [404, 422, 422]
    assert results[0]["edit"] == send(client, rounds="2")


def test_an_image_is_encoded_once(client: TestClient) -> None:
    key = client.post("/api/v1/images", content=picture(3)).json()
    assert (key["width"], key["height"]) == (60, 40)
    for caption in ("a dog", "a cat", "two women"):
        send(client, caption, picture(3))
    text = client.get("/metrics").text
    assert 'capedit_images_total{how="encoded"} 1.0' in text
    assert 'capedit_images_total{how="remembered"} 3.0' in text


def test_gaze_tells_of_every_word_and_region(client: TestClient, editor: Editor) -> None:
    key = client.post("/api/v1/images", content=picture()).json()["image_id"]
    told = client.post("/api/v1/gaze", json={"image_id": key, "caption": CAPTION}).json()
    own = editor.support(picture(), CAPTION)
    assert own is not None
    assert told["words"] == ["a", "dog", "is", "on", "the", "sofa"]
    assert told["boxes"] == own.boxes[1:, :4].tolist()
    above = own.values[:, 1:] - own.values[:, 1:].mean(1, keepdims=True)
    np.testing.assert_allclose(told["weights"], np.clip(above / CONTRAST, 0, 1), atol=1e-4)


def test_a_model_without_grounding_is_asked_by_hiding_regions(tmp_path: Path) -> None:
    bundle = Bundle.load(write_tiny_model(tmp_path, tiny_config(grounding=None)))
    editor = Editor(bundle, load_modules(bundle, Runtime.ONNX, 1), MeanColours())
    assert editor.support(picture(5), "a dog") is None
    image = editor.encoder.encode([picture(5)])[0]
    told = gaze(editor, image, "a dog")
    text = frame([["a", "dog"]], editor.modules.vocabulary)
    whole = editor.modules.delete(text, editor.see([image]))[0][0, 1:3]
    for place in range(4):
        left = np.arange(4) != place
        less = VisualTokens.from_regions(image.features[1:][left], image.boxes[1:, :4][left])
        without = editor.modules.delete(text, editor.see([less]))[0][0, 1:3]
        np.testing.assert_allclose(told.weights[:, place], 1 - np.exp(-np.maximum(without - whole, 0)), atol=1e-3)
    assert told.weights.any()


def test_the_trace_as_a_picture(client: TestClient) -> None:
    trace = send(client)["trace"]
    answer = client.post("/api/v1/picture", json=trace)
    assert answer.headers["content-type"] == "image/svg+xml"
    assert ElementTree.fromstring(answer.text).tag.endswith("svg")
    broken = {"source": ["a"], "rounds": [[{"op": "KEEP", "token": "b"}]]}
    assert client.post("/api/v1/picture", json=broken).status_code == 422


def test_about(client: TestClient, editor: Editor) -> None:
    assert client.get("/api/v1/health").json() == {"status": "ok", "waiting": 0, "places": 128}
    told = client.get("/api/v1/model").json()
    assert told["model"] == editor.model
    assert told["knobs"]["rounds"] == editor.knobs.rounds
    document = client.get("/api/v1/openapi.json").json()
    assert {"/api/v1/edit", "/api/v1/edits", "/api/v1/health", "/api/v1/model", "/metrics"} <= set(document["paths"])
    assert set(document["paths"]["/api/v1/edit"]["post"]["requestBody"]["content"]) == {
        "application/json",
        "multipart/form-data",
    }


def test_metrics_count(client: TestClient) -> None:
    send(client)
    client.post("/api/v1/edit", json={})
    text = client.get("/metrics").text
    assert 'capedit_requests_total{method="POST",route="/api/v1/edit",status="200"} 1.0' in text
    assert 'capedit_requests_total{method="POST",route="/api/v1/edit",status="422"} 1.0' in text
    assert 'capedit_batch_size_count{stage="edit"} 1.0' in text
    assert "capedit_request_seconds_bucket" in text


def test_examples(client: TestClient, tmp_path: Path) -> None:
    (example,) = client.get("/api/v1/examples").json()
    answer = client.get(example["url"])
    assert answer.content == picture(7)
    assert answer.headers["content-type"] == "image/png"
    assert client.get("/api/v1/examples/9").status_code == 404
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(picture(number))
    captions = [
        Instance(id=n, reference=f"caption {n}", image=ImageFile(tmp_path / f"{n % 3}.png", f"{n % 3}.png"))
        for n in range(5)
    ]
    write_dataset(captions, tmp_path / "own.jsonl")
    own = examples_from(tmp_path / "own.jsonl")
    assert [(one.caption, one.read()[1]) for one in own] == [(f"caption {n}", "image/png") for n in range(3)]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"caption": "a dog"}, ""),
        ({"image_id": "x", "caption": "a dog"}, "image_id"),
        ({"image_id": "0" * 64}, "caption"),
        ({"image_id": "0" * 64, "caption": 7}, "caption"),
        ({"image_id": "0" * 64, "caption": "a dog", "knobs": {"boldness": 1}}, "knobs.boldness"),
        ({"image_id": "0" * 64, "caption": "a dog", "knobs": {"min_confidence": 2}}, "knobs.min_confidence"),
        ({"image": "***", "caption": "a dog"}, ""),
    ],
)
def test_a_bad_field_is_named(client: TestClient, body: dict[str, object], field: str) -> None:
    answer = client.post("/api/v1/edit", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["field"] == field


def test_a_forgotten_image_is_said_to_be_forgotten(client: TestClient) -> None:
    answer = client.post("/api/v1/edit", json={"image_id": "0" * 64, "caption": "a dog"})
    assert answer.status_code == 404
    assert "send it again" in answer.json()["detail"]

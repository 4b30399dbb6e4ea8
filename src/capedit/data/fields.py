"""Which field of a record plays which role, and the way between records and instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from capedit.data.errors import DataError, FieldError
from capedit.data.images import Image, ImageBytes
from capedit.data.instance import Instance, Origin, made_up_id

Record = dict[str, Any]
Locate = Callable[[str], Image]
"""Makes an image reference of the path a record gives."""

EE_NAMES: Mapping[str, str] = {
    "image_id": "image_id",
    "reference": "Ref-Cap",
    "reference_tokens": "Ref-Cap_tokens",
    "target": "GT-Cap",
    "target_tokens": "GT-Cap_tokens",
    "id": "sample_id",
    "image": "image",
    "prediction": "prediction",
}
"""The published COCO-EE and Flickr30K-EE files, in their order."""

DEFAULT_NAMES: Mapping[str, str] = {
    "id": "id",
    "image_id": "image_id",
    "image": "image",
    "reference": "reference",
    "reference_tokens": "reference_tokens",
    "target": "target",
    "target_tokens": "target_tokens",
    "prediction": "prediction",
}
"""The names given to fields that come from nowhere else."""

# Compared in lower case with "-" and " " as "_"; the first that a record has wins.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("sample_id", "id", "caption_id", "uid", "__key__", "key"),
    "image_id": ("image_id", "imageid", "img_id", "imgid", "image_key"),
    "image": (
        *("image", "img", "file_name", "filename", "image_path", "img_path", "image_file", "image_name"),
        *("file_path", "filepath", "path"),
    ),
    "reference": (
        *("ref_cap", "reference", "ref_caption", "reference_caption", "caption", "raw_caption", "text"),
        *("sentence", "description", "comment", "alt_text", "captions", "prompt"),
    ),
    "reference_tokens": ("ref_cap_tokens", "reference_tokens", "caption_tokens", "tokens"),
    "target": ("gt_cap", "target", "gt_caption", "target_caption", "ground_truth", "gt"),
    "target_tokens": ("gt_cap_tokens", "target_tokens"),
    "prediction": ("prediction", "pred", "predicted_caption", "predicted"),
}
_UNMISTAKABLE = frozenset({*EE_NAMES.values()} - {"image", "prediction"})


def check_fields(fields: Mapping[str, str | None]) -> None:
    """Refuse a mapping of roles that do not exist."""
    for role in fields:
        if role not in ALIASES:
            raise DataError(f"unknown role {role!r} in fields; known: {', '.join(ALIASES)}")


def detect(keys: tuple[str, ...], fields: Mapping[str, str | None]) -> Mapping[str, str]:
    """Which key plays which role: what `fields` says, and by the usual names where it says nothing.

    A role mapped to None is played by no field.
    """
    return _detect(keys, tuple(fields.items()))


@lru_cache(maxsize=256)
def _detect(keys: tuple[str, ...], fields: tuple[tuple[str, str | None], ...]) -> Mapping[str, str]:
    said = dict(fields)
    names = {role: key for role, key in said.items() if key is not None and key in keys}
    taken = set(names.values())
    plain = {key.strip().lower().replace("-", "_").replace(" ", "_"): key for key in reversed(keys)}
    for role, aliases in ALIASES.items():
        if role in said:
            continue
        key = next((plain[a] for a in aliases if a in plain and plain[a] not in taken), None)
        if key is not None:
            names[role] = key
            taken.add(key)
    return names


def read_instance(
    record: Record, fields: Mapping[str, str | None], locate: Locate, origin: Callable[..., Origin]
) -> Instance:
    """The instance of a record; raises `FieldError` when it has no usable caption.

    A field that merely looks like an optional role (a number called "target") is no error but an extra
    field; one that was named by the caller, or bears a published name, must be of the right type.
    """
    names = dict(detect(tuple(record), fields))
    values: dict[str, Any] = {}
    for role, key in tuple(names.items()):
        try:
            values[role] = _DECODERS[role](record[key], locate)
        except FieldError as error:
            if role == "reference" or role in fields or key in _UNMISTAKABLE:
                raise FieldError(key, error.reason) from None
            del names[role]
    if "reference" not in names:
        wanted = fields.get("reference") or "a caption (such as 'caption', 'text' or 'Ref-Cap')"
        raise FieldError(None, f"no field holds {wanted}; fields: {', '.join(record) or 'none'}")
    source = origin(record=record, names=names)
    used = set(names.values())
    if values.get("id") is None:
        values["id"] = made_up_id(source)
    for tokens in ("reference_tokens", "target_tokens"):
        values["given_" + tokens] = values.pop(tokens, None)
    extra = {key: value for key, value in record.items() if key not in used}
    return Instance(**values, extra=extra, origin=source)


def write_record(instance: Instance, names: Mapping[str, str], image: Any) -> Record:
    """The record of an instance, its roles under `names`; `image` is the value for the image field.

    Fields keep the order (and, where they did not change, the very values) of the record the instance
    came from, unless `names` calls them differently: then roles come first, in the order of `names`.
    """
    origin = instance.origin
    base = origin.record if origin else {}
    found = origin.names if origin else {}
    values = _role_values(instance, image)
    record: Record = {}
    if all(names.get(role) == key for role, key in found.items()):
        roles = {key: role for role, key in found.items()}
        for key, before in base.items():
            if key in roles:
                record[key] = _kept(before, values.pop(roles[key], None), roles[key], instance)
            elif key in instance.extra:
                record[key] = instance.extra[key]
    else:
        for role in ("reference_tokens", "target_tokens"):
            if role in found and values.get(role) is None:
                values[role] = _tokens(instance, role)
    for role, key in names.items():
        if (value := values.get(role)) is not None:
            if key in instance.extra:
                raise DataError(f"instance {instance.id!r}: {role} and an extra field are both called {key!r}")
            record[key] = value
    for key, value in instance.extra.items():
        record.setdefault(key, value)
    return record


def extended(names: Mapping[str, str], extra: Mapping[str, Any]) -> Mapping[str, str]:
    """`names`, with a default name for every role it leaves out: the published one if that is taken."""
    rest = {role: EE_NAMES[role] if key in extra else key for role, key in DEFAULT_NAMES.items()}
    return {**rest, **names}


def _role_values(instance: Instance, image: Any) -> dict[str, Any]:
    given = (instance.given_reference_tokens, instance.given_target_tokens)
    return {
        "id": instance.id if instance.has_given_id else None,
        "image_id": instance.image_id,
        "image": image,
        "reference": instance.reference,
        "reference_tokens": None if given[0] is None else list(given[0]),
        "target": instance.target,
        "target_tokens": None if given[1] is None else list(given[1]),
        "prediction": instance.prediction,
    }


def _kept(before: Any, value: Any, role: str, instance: Instance) -> Any:
    """The value for a field that was there before: itself if unchanged, tokens anew if they went stale."""
    if value is None and before is not None and role in ("reference_tokens", "target_tokens"):
        return _tokens(instance, role)
    if value is None and before == "":
        return before
    return value


def _tokens(instance: Instance, role: str) -> list[str] | None:
    tokens = instance.reference_tokens if role == "reference_tokens" else instance.target_tokens
    return None if tokens is None else list(tokens)


def kind(value: Any) -> str:
    """A value's type in words."""
    if value is None:
        return "null"
    words = {bool: "true/false", int: "a number", float: "a number", str: "text", list: "a list"}
    return words.get(type(value), "an object" if isinstance(value, dict) else type(value).__name__)


def _text(value: Any, _: Locate) -> str:
    if not isinstance(value, str):
        raise FieldError(None, f"expected text, found {kind(value)}")
    return value


def _optional_text(value: Any, locate: Locate) -> str | None:
    return None if value is None else _text(value, locate)


def _identifier(value: Any, _: Locate) -> str | int | None:
    if value is None or (isinstance(value, str | int) and not isinstance(value, bool)):
        return value
    raise FieldError(None, f"expected an id (text or whole number), found {kind(value)}")


def _token_list(value: Any, _: Locate) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(token, str) for token in value):
        raise FieldError(None, f"expected a list of words, found {kind(value)}")
    return tuple(value)


def _image(value: Any, locate: Locate) -> Image | None:
    if value is None or value == "":
        return None
    if isinstance(value, bytes):
        return ImageBytes(value)
    if isinstance(value, str) and not value.startswith(("http://", "https://", "data:")):
        return locate(value)
    if isinstance(value, dict) and set(value) <= {"bytes", "path"}:
        data, path = value.get("bytes"), value.get("path")
        if isinstance(data, bytes):
            return ImageBytes(data, path if isinstance(path, str) else None)
        if isinstance(path, str):
            return locate(path)
    raise FieldError(None, f"expected the path of an image, found {kind(value)}")


_DECODERS: Mapping[str, Callable[[Any, Locate], Any]] = {
    "id": _identifier,
    "image_id": _identifier,
    "image": _image,
    "reference": _text,
    "reference_tokens": _token_list,
    "target": _optional_text,
    "target_tokens": _token_list,
    "prediction": _optional_text,
}

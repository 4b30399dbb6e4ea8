"""The root of every error that a user can mend. Each names what is wrong, and where."""


class CapeditError(ValueError):
    """Bad input, bad data, a missing extra: anything but a bug."""


class MissingExtraError(CapeditError, ImportError):
    """Something needs packages that an extra would bring."""

    def __init__(self, what: str, extra: str, why: object = "") -> None:
        super().__init__(f"{what}: pip install 'capedit[{extra}]'" + (f" ({why})" if why else ""))

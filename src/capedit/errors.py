"""The root of every error that a user can mend. Each names what is wrong, and where."""


class CapeditError(ValueError):
    """Bad input, bad data, a missing extra: anything but a bug."""

"""How the weights of exported networks are kept."""

from enum import StrEnum


class Bits(StrEnum):
    """Apart from the code that shrinks files, so that it can be named without the packages which that needs."""

    FLOAT32 = "fp32"
    FLOAT16 = "fp16"
    INT8 = "int8"

"""Arguments as the calls need them: ValueError with the name and the reason for everything else."""

from __future__ import annotations

from typing import Any, Hashable, Iterable

import numpy as np


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """A list of them; ValueError if there cannot be one."""
    if isinstance(values, (str, bytes)):
        raise ValueError(f"{name}: is a text, expected a list")
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name}: is of type {type(values).__name__}, expected a list") from None


def text(name: str, value: Any) -> str:
    """Raises ValueError unless it is a text of valid Unicode."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: is of type {type(value).__name__}, expected a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: is no valid Unicode") from None
    return value


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}: is {value!r:.100}, expected a number") from None


def count(name: str, value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{name}: is {value!r:.100}, expected a whole number from 0")
    return value


def reals(name: str, values: Any) -> np.ndarray:
    """An array of real numbers."""
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: cannot be made an array of numbers: {error}") from None


def hashable(name: str, value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"{name}: is of type {type(value).__name__}, expected a name") from None
    return value

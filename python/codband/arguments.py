"""Arguments as the calls need them: ValueError with the name and the reason for everything else."""

from __future__ import annotations

import json
from typing import Any, Hashable, Iterable, Mapping

import numpy as np


def listed(name: str, values: Iterable[Any]) -> list[Any]:
    """A list of them; ValueError if there cannot be one."""
    if isinstance(values, (str, bytes)):
        raise ValueError(f"{name}: is a text, expected a list")
    try:
        return list(values)
    except TypeError:
        raise ValueError(f"{name}: is of type {type(values).__name__}, expected a list") from None


def records(name: str, values: Iterable[Any]) -> list[dict[str, Any]]:
    """A list of dictionaries."""
    entries = listed(name, values)
    for entry in entries:
        if not isinstance(entry, Mapping):
            raise ValueError(f"{name}: has one of type {type(entry).__name__}, expected dictionaries")
    return [dict(entry) for entry in entries]


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
    if not isinstance(value, (int, np.integer)) or not 0 <= value < 2**63:
        raise ValueError(f"{name}: is {value!r:.100}, expected a whole number from 0")
    return int(value)


def json_text(value: Any) -> str:
    """A request as JSON; NumPy's numbers and arrays become numbers and lists."""
    try:
        return json.dumps(value, allow_nan=False, default=_without_numpy)
    except (TypeError, ValueError) as error:
        raise ValueError(f"request: cannot be written as JSON: {error}") from None


def _without_numpy(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"it has an object of type {type(value).__name__}")


def array(name: str, values: Any, kinds: str = "fiub") -> np.ndarray:
    """An array of numbers of these kinds (NumPy's letters). Nothing is guessed: texts, objects, complex and
    masked numbers are refused."""
    try:
        made = np.asanyarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: cannot be made an array of numbers: {error}") from None
    if isinstance(made, np.ma.MaskedArray):
        raise ValueError(f"{name}: is a masked array, expected one without a mask")
    if made.dtype.kind not in kinds:
        expected = "real" if "f" in kinds else "whole"
        raise ValueError(f"{name}: holds {made.dtype} of the shape {made.shape}, expected {expected} numbers")
    return np.asarray(made)


def reals(name: str, values: Any) -> np.ndarray:
    """An array of real numbers."""
    return array(name, values).astype(float)


def row(name: str, values: Any, kinds: str = "fiub") -> np.ndarray:
    """An array with one axis."""
    made = array(name, values, kinds)
    if made.ndim != 1:
        raise ValueError(f"{name}: has the shape {made.shape}, expected one row of numbers")
    return made


def hashable(name: str, value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"{name}: is of type {type(value).__name__}, expected a name") from None
    return value

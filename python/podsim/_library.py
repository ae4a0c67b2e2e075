# SPDX-License-Identifier: Apache-2.0
"""libpodsim by ctypes: where it is, its functions, and the words of a command line made of Python's values."""

import ctypes
import ctypes.util
import os
import pathlib
from typing import Any, List, Optional, Sequence, Tuple

# Options that the command line repeats, where others take one list; and those that are "on" or "off".
REPEATED = frozenset(["branch", "custom-call", "fail-dcn", "fail-link", "maxtext", "mesh", "scale", "set", "slice", "slow-chip",
                      "slow-host", "slow-link", "slow-nic", "trip"])
ON_OFF = frozenset(["collective-matmul", "context-balance", "dcn-overlap", "vmem-prefetch"])
# Dictionaries that are one value, "fsdp=16,tensor=4".
MESHES = frozenset(["dcn-mesh", "mesh"])


class Option(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


def _text(value: Any) -> str:
    return str(os.fspath(value)) if isinstance(value, os.PathLike) else str(value)


def _pairs(value: Any) -> List[str]:
    return [f"{key}={_text(factor)}" for key, factor in value.items()]


def _values(name: str, value: Any) -> List[Optional[str]]:
    """What an option is given, once for each time that it is repeated; None is an option without a value."""
    if value is None:
        return []
    if isinstance(value, bool):
        if name in ON_OFF:
            return ["on" if value else "off"]
        return [None] if value else []
    if isinstance(value, dict):
        pairs = _pairs(value)
        return [",".join(pairs)] if name in MESHES or name not in REPEATED else list(pairs)
    if isinstance(value, (list, tuple)):
        if name in REPEATED:
            return [one for each in value for one in _values(name, each)]
        return [",".join(_text(each) for each in value)]
    return [_text(value)]


def options_of(arguments: Sequence[str], options: "dict[str, Any]") -> List[Tuple[str, Optional[str]]]:
    """`gather_ahead` is gather-ahead, and `from_` is from, which Python keeps for itself."""
    words: List[Tuple[str, Optional[str]]] = [("", argument) for argument in arguments]
    for key, value in options.items():
        name = key.rstrip("_").replace("_", "-")
        words += [(name, one) for one in _values(name, value)]
    return words


def _candidates() -> List[str]:
    chosen = os.environ.get("PODSIM_LIB")
    if chosen:
        return [chosen]
    beside = pathlib.Path(__file__).resolve().parent / "libpodsim.so.0"
    found = ctypes.util.find_library("podsim")
    return ([str(beside)] if beside.exists() else []) + ["libpodsim.so.0"] + ([found] if found else [])


def load() -> ctypes.CDLL:
    """@raise OSError  with what was tried and what to do"""
    reasons = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
            break
        except OSError as error:
            reasons.append(str(error))
    else:
        raise OSError("can't load libpodsim: " + "; ".join(reasons) + ". Install podsim's Debian package, or set PODSIM_LIB to a "
                      "libpodsim.so, as build/release/lib/libpodsim.so")
    try:
        declare(library)
    except AttributeError as error:
        raise OSError(f"{library._name} is no libpodsim: {error}") from None
    return library


def declare(library: ctypes.CDLL) -> None:
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    for name, result, arguments in [
            ("podsim_open", pointer, []), ("podsim_open_comm", pointer, [ctypes.c_int]), ("podsim_close", None, [pointer]),
            ("podsim_error", text, [pointer]), ("podsim_version", text, []), ("podsim_result_free", None, [pointer]),
            ("podsim_result_json", text, [pointer]), ("podsim_result_messages", text, [pointer]),
            ("podsim_ask", ctypes.c_int, [pointer, text, ctypes.POINTER(Option), ctypes.POINTER(pointer)])]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments

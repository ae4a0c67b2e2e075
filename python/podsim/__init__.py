# SPDX-License-Identifier: Apache-2.0
"""What a collective, a training step or a compiled program costs on a TPU pod slice, without the pod.

Functions take the options of podsim's commands by name: `gather_ahead=4` is --gather-ahead 4. True is an option without a value, a
dictionary is "fsdp=16,tensor=4", a list repeats the option or is "1,2,4", as the option wants it. See docs/python.md.
"""

import ctypes
import json
import os
import tempfile
import threading
from typing import Any, Optional, Type, TypeVar, Union

from . import _library
from .rows import Collective, Hlo, Plan, Result, Row, Slice, Step

__all__ = ["CheckFailed", "Collective", "Context", "Error", "Hlo", "InputError", "InternalError", "Plan", "Result", "Row", "Slice",
           "Step", "SystemFault", "UsageError", "ask", "collective", "compare", "hlo", "plan", "slice", "step", "version"]

_R = TypeVar("_R", bound=Row)


class Error(Exception):
    """podsim's line about what is wrong and what would be right."""

    code = 70  #: exit code of the command line
    result: Optional[Result[Any]] = None  #: where there are rows all the same


class CheckFailed(Error):
    """A check failed: numbers that are wrong, a measurement too far off. There is a result."""

    code = 1


class UsageError(Error, ValueError):
    """An option is unknown, missing, or no value of its kind."""

    code = 2


class InputError(Error, ValueError):
    """The request can't be met, or a file of it isn't what it should be."""

    code = 3


class SystemFault(Error, OSError):
    """Files, memory, the installation."""

    code = 4


class InternalError(Error):
    """A bug in podsim."""

    code = 70


_ERRORS = {kind.code: kind for kind in (CheckFailed, UsageError, InputError, SystemFault, InternalError)}


class Context:
    """A connection to libpodsim for one thread at a time. The functions of this module have one for each thread.

    comm: a communicator of mpi4py, whose ranks then share the work: all call the same, and all get the answer.
    """

    def __init__(self, comm: Any = None) -> None:
        self._library = _library.load()
        self._pointer = self._library.podsim_open() if comm is None else self._library.podsim_open_comm(comm.py2f())
        if not self._pointer:
            raise SystemFault("no memory, or MPI isn't initialised")

    def close(self) -> None:
        pointer, self._pointer = self._pointer, None
        if pointer:
            self._library.podsim_close(pointer)

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self.close()

    def _ask(self, kind: Type[_R], command: str, arguments: Any, options: Any) -> "Result[_R]":
        words = _library.options_of([os.fspath(argument) for argument in arguments], options)
        given = (_library.Option * (len(words) + 1))()
        for at, (name, value) in enumerate(words):
            given[at] = _library.Option(name.encode(), None if value is None else value.encode())
        answer = ctypes.c_void_p()
        code = self._library.podsim_ask(self._pointer, command.encode(), given, ctypes.byref(answer))
        result = None
        if answer:
            text = self._library.podsim_result_json(answer)
            messages = self._library.podsim_result_messages(answer).decode()
            self._library.podsim_result_free(answer)
            result = Result(json.loads(text), messages, kind)
        if code != 0 or result is None:
            error = _ERRORS.get(code, InternalError)(self._library.podsim_error(self._pointer).decode())
            error.result = result
            raise error
        return result

    def ask(self, command: str, *arguments: Union[str, "os.PathLike[str]"], **options: Any) -> Result[Row]:
        """Any command that prints rows; `arguments` are those without dashes. Rows have `columns` alone."""
        return self._ask(Row, command, arguments, options)

    def slice(self, slice: str, **options: Any) -> Slice:
        """What a slice is: chips, hosts, links, distances, bisection."""
        return self._ask(Slice, "slice", (), dict(options, slice=slice))[0]

    def collective(self, **options: Any) -> Result[Collective]:
        """slice, op and bytes, and the other options of podsim collective: a row for each size (and algorithm)."""
        return self._ask(Collective, "collective", (), options)

    def step(self, **options: Any) -> Step:
        """slice, model and mesh, and the other options of podsim step. A transformer has four sequences a chip and 4096 tokens
        in each, unless batch and seq say otherwise."""
        model, where = str(options.get("model", "mlp:")), options.get("slice")
        if not model.startswith(("mlp:", "matmul:")) and not {"recipe", "maxtext"} & set(options) and isinstance(where, str):
            options.setdefault("seq", 4096)
            if not {"batch", "batch_per_chip"} & set(options):
                there = self.slice(where)
                options["batch"] = 4 * there.chips * there.slices
        return self._only(self._ask(Step, "step", (), options))

    def compare(self, **options: Any) -> Result[Step]:
        """slice, model and batch, and the other options of podsim compare: a row for each layout, the fastest first."""
        return self._ask(Step, "compare", (), options)

    def plan(self, **options: Any) -> Result[Plan]:
        """model and batch, and the other options of podsim plan: a row for each slice, the best first."""
        return self._ask(Plan, "plan", (), options)

    def hlo(self, compiled: Any, **options: Any) -> Hlo:
        """A compiled program on a slice.

        compiled: a jax.stages.Compiled, its text, or the path of a file that holds it.
        """
        text = compiled.as_text() if hasattr(compiled, "as_text") else compiled
        if text is None:
            raise UsageError(f"{type(compiled).__name__}.as_text() gives no text; give the text of the compiled program")
        if not isinstance(text, bytes) and "\n" not in str(text):
            return self._only(self._ask(Hlo, "hlo", (text,), options))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "compiled.hlo.txt")
            with open(path, "wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
            return self._only(self._ask(Hlo, "hlo", (path,), options))

    @staticmethod
    def _only(result: "Result[_R]") -> _R:
        if len(result) != 1 or "step_time_s" not in result[0].columns:
            raise UsageError(f"{len(result)} rows that are not one step; podsim.ask gives such answers")
        return result[0]


_threads = threading.local()


def _context() -> Context:
    if not hasattr(_threads, "context"):
        _threads.context = Context()
    context: Context = _threads.context
    return context


def ask(command: str, *arguments: Union[str, "os.PathLike[str]"], **options: Any) -> Result[Row]:
    return _context().ask(command, *arguments, **options)


def slice(slice: str, **options: Any) -> Slice:
    return _context().slice(slice, **options)


def collective(**options: Any) -> Result[Collective]:
    return _context().collective(**options)


def step(**options: Any) -> Step:
    return _context().step(**options)


def compare(**options: Any) -> Result[Step]:
    return _context().compare(**options)


def plan(**options: Any) -> Result[Plan]:
    return _context().plan(**options)


def hlo(compiled: Any, **options: Any) -> Hlo:
    return _context().hlo(compiled, **options)


for _name in __all__[-7:-1]:
    globals()[_name].__doc__ = getattr(Context, _name).__doc__
ask.__doc__ = Context.ask.__doc__


def version() -> str:
    """Of libpodsim."""
    text: bytes = _context()._library.podsim_version()
    return text.decode()

"""Running requests: many in flight, their results in order, for threads and for asyncio.

A request is a function that submits it, so that what is wrong with one row is that row's result. At
most `ahead` of them are in flight; whatever ends a call early cancels those. Waiting for a job hears
Ctrl-C (the native module looks at signals), and under asyncio one thread wakes the tasks whose jobs
have news.
"""

from __future__ import annotations

import collections
import inspect
import itertools
import os
import sys
import threading
import time
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Deque, Dict, Iterable, Iterator, List, Optional,
                    Set, Tuple, TypeVar, Union)

from . import _pawl
from ._errors import PawlError

if TYPE_CHECKING:  # imported by who uses it: a third of the time of `import pawl`
    import asyncio

T = TypeVar("T")

#: Submits a request; the flag says whether its output is streamed.
Request = Callable[[bool], _pawl.Job]
Result = Union[_pawl.Job, Exception]

#: Numbers of calls: the requests of one call take turns with those of others.
groups = itertools.count(1)

#: A wait without a limit.
FOREVER = 1e9

# What fails for one row only; everything else ends the call.
_ROW_ERRORS = (PawlError, TypeError, UnicodeError)


class Running:
    """What runs on one engine of the native module."""

    def __init__(self, native: _pawl.Engine) -> None:
        self._native = native
        self._process = os.getpid()
        self._at_exit = False
        self._inside: Set[int] = set()  # threads in the native module, but for the waker
        self._lock = threading.Lock()
        self._waker: Optional[threading.Thread] = None
        self._waiting: Dict[int, Tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = {}

    def close(self) -> None:
        if self._process != os.getpid():
            return
        try:
            self._native.close()
        finally:
            # At the end of the interpreter no thread may be inside of the native module.
            if self._waker is not None and self._waker is not threading.current_thread():
                self._waker.join()

    def close_quietly(self) -> None:
        """When no one holds the engine any more, or at the end of the interpreter."""
        self._at_exit = True
        try:
            self.close()
        except PawlError:  # the history of drafts could not be written; Engine.close would have told
            pass
        # Closing wakes daemon threads; each has a second to come out.
        end = time.monotonic() + 1
        while self._inside - {threading.get_ident()} and time.monotonic() < end:
            time.sleep(0.001)

    def call(self, native: Callable[..., T], *arguments: Any) -> T:
        """native(*arguments), which may wait, or raise because the engine was closed."""
        self._inside.add(threading.get_ident())
        try:
            return native(*arguments)
        finally:
            self._inside.discard(threading.get_ident())
            self.hold_at_exit()

    def hold_at_exit(self) -> None:
        """Only daemon threads still use an engine that the end of the interpreter has closed. That is
        no error of theirs: they wait here until the process is gone."""
        if self._at_exit and threading.current_thread() is not threading.main_thread():
            threading.Event().wait()

    def one(self, request: Request) -> _pawl.Job:
        job = request(False)
        try:
            while not job.done:
                self.call(job.wait_done, FOREVER)
        except BaseException:
            job.cancel()
            raise
        return job

    async def aone(self, request: Request) -> _pawl.Job:
        job = request(False)
        try:
            while not job.done:
                await self.news(job)
            self.hold_at_exit()
        except BaseException:
            job.cancel()
            raise
        return job

    def run(self, requests: Iterable[Request], ahead: int) -> Iterator[Result]:
        """The jobs of the requests when they are done, in their order."""
        waiting: Deque[Result] = collections.deque()
        source = iter(requests)
        more = True
        try:
            while more or waiting:
                while more and len(waiting) < ahead:
                    try:
                        waiting.append(next(source)(False))
                    except StopIteration:
                        more = False
                    except _ROW_ERRORS as error:
                        waiting.append(error)
                if not waiting:
                    return
                first = waiting[0]
                while not isinstance(first, Exception) and not first.done:
                    self.call(first.wait_done, FOREVER)
                yield waiting.popleft()
        finally:
            _cancel(waiting)

    async def arun(self, requests: AsyncIterator[Request], ahead: int) -> AsyncIterator[Result]:
        import asyncio

        waiting: Deque[Result] = collections.deque()
        # What is waited for: the next request, and the end of the first job.
        reading: "Optional[asyncio.Task[Request]]" = None
        watching: "Optional[asyncio.Task[None]]" = None
        more = True
        try:
            while more or waiting:
                if more and reading is None and len(waiting) < ahead:
                    reading = asyncio.ensure_future(_next(requests))
                first = waiting[0] if waiting else None
                if first is not None and (isinstance(first, Exception) or first.done):
                    self.hold_at_exit()
                    yield waiting.popleft()
                    continue
                if first is not None and watching is None:
                    watching = asyncio.ensure_future(self.news(first))
                await asyncio.wait({task for task in (reading, watching) if task is not None},
                                   return_when=asyncio.FIRST_COMPLETED)
                if watching is not None and watching.done():
                    done, watching = watching, None
                    done.result()
                if reading is not None and reading.done():
                    read, reading = reading, None
                    try:
                        waiting.append(read.result()(False))
                    except StopAsyncIteration:
                        more = False
                    except _ROW_ERRORS as error:
                        waiting.append(error)
        finally:
            for task in (reading, watching):
                if task is not None:
                    task.cancel()
            _cancel(waiting)

    async def news(self, job: _pawl.Job) -> None:
        """Until something new has come of the job."""
        import asyncio

        if self._waker is None:
            with self._lock:
                if self._waker is None:
                    self._waker = threading.Thread(target=self._wake_all, name="pawl", daemon=True)
                    self._waker.start()
        loop = asyncio.get_running_loop()
        if not isinstance(job, _pawl.Job):  # the draw of a sampler
            await loop.run_in_executor(None, job.wait_done, FOREVER)
            return
        future: "asyncio.Future[None]" = loop.create_future()
        entry = self._waiting[job.id] = loop, future
        try:
            if not job.arm():
                await future
        finally:
            if self._waiting.get(job.id) is entry:
                del self._waiting[job.id]

    def _wake_all(self) -> None:
        """Wakes the tasks whose jobs have news. The only thread that knows both sides."""
        while True:
            ids = self._native.wait_armed()
            if ids is None:
                return
            for job in ids:
                entry = self._waiting.pop(job, None)
                if entry is None:
                    continue
                loop, future = entry
                try:
                    loop.call_soon_threadsafe(_wake, future)
                except RuntimeError:  # its loop was closed
                    pass


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _cancel(jobs: Iterable[Result]) -> None:
    for job in jobs:
        if not isinstance(job, Exception):
            job.cancel()


async def asynchronous(items: Iterable[T]) -> AsyncIterator[T]:
    for item in items:
        yield item


async def _next(items: AsyncIterator[T]) -> T:
    return await items.__anext__()


def _at_row(error: Exception, errors: str, what: str, row: int) -> Exception:
    place = f"{what}[{row}]"
    if isinstance(error, TypeError) and errors == "raise":
        return TypeError(f"{place}: {error}")
    if not isinstance(error, PawlError):
        if not isinstance(error, (TypeError, UnicodeError)):
            return error
        error = PawlError("invalid", str(error))
    if error.place not in ("", "text", "prompt", "chat_json"):
        place += ": " + error.place
    return PawlError(error.code, error.message, place)


def _value_or_error(result: Result, of: Callable[[_pawl.Job], T], errors: str, what: str,
                    row: int) -> Any:
    try:
        if isinstance(result, Exception):
            raise result
        return of(result)
    except Exception as error:  # Pydantic's as well
        return _at_row(error, errors, what, row)


async def _avalue_or_error(result: Result, of: Callable[[_pawl.Job], Any], errors: str, what: str,
                           row: int) -> Any:
    try:
        if isinstance(result, Exception):
            raise result
        value = of(result)
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        return _at_row(error, errors, what, row)


def values(jobs: Iterable[Result], of: Callable[[_pawl.Job], T], errors: str,
           what: str) -> Iterator[Any]:
    _check_errors(errors)
    return _value_iterator(jobs, of, errors, what)


def _value_iterator(jobs: Iterable[Result], of: Callable[[_pawl.Job], T], errors: str,
                   what: str) -> Iterator[Any]:
    for row, result in enumerate(jobs):
        value = _value_or_error(result, of, errors, what, row)
        if isinstance(value, Exception) and errors == "raise":
            raise value
        yield value


async def avalues(jobs: AsyncIterator[Result], of: Callable[[_pawl.Job], T], errors: str,
                  what: str) -> AsyncIterator[Any]:
    _check_errors(errors)
    row = 0
    try:
        async for result in jobs:
            value = await _avalue_or_error(result, of, errors, what, row)
            row += 1
            if isinstance(value, Exception) and errors == "raise":
                raise value
            yield value
    finally:
        await jobs.aclose()  # type: ignore[attr-defined]


def gather(jobs: Iterable[Result], of: Callable[[_pawl.Job], T], errors: str, what: str,
           progress_bar: Any) -> List[Any]:
    found = []
    try:
        for value in values(jobs, of, errors, what):
            found.append(value)
            if progress_bar is not None:
                progress_bar.update()
    finally:
        if progress_bar is not None:
            progress_bar.close()
    return found


async def agather(jobs: AsyncIterator[Result], of: Callable[[_pawl.Job], T], errors: str,
                  what: str) -> List[Any]:
    return [value async for value in avalues(jobs, of, errors, what)]


def _check_errors(errors: str) -> None:
    if errors not in ("raise", "return"):
        raise PawlError("invalid", f'must be "raise" or "return", not {errors!r}', "errors")


def bar(progress: Optional[bool], total: int, what: str) -> Any:
    """A bar of tqdm: where it was asked for, or where somebody looks and there is a tqdm."""
    if progress is False or total < 2 and progress is None:
        return None
    if progress is None and not (sys.stderr is not None and sys.stderr.isatty()):
        return None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        if progress:
            raise ImportError("progress=True needs tqdm: pip install tqdm") from None
        return None
    return tqdm(total=total, desc=what, unit="", delay=0 if progress else 1)

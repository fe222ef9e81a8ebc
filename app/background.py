"""Work off the window's thread.

Threads never touch Qt. A thread leaves what it has in its task's mailbox, and a timer of the window looks there. So
nothing can be destroyed under a thread's feet, and to stop a task is to look no more: for the window it is over at
once, whatever its thread is in the middle of. The thread itself ends at its next step or kernel (`threads.stop_when`).

SPDX-License-Identifier: GPL-3.0-or-later
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from qtpy.QtCore import QObject, QTimer

from denoiser import threads

POLL_MS = 15
_NICE = 5  # on Linux, the threads of heavy tasks give way to the window's
_SWITCH = 0.0005  # seconds that a thread may keep Python's lock when the window wants it; the default is ten times that

Work = Callable[["Task"], Any]
_heavy = threading.Lock()  # one heavy task computes at a time; what was stopped may have a step to end first


class Task:
    """One piece of work on its own thread. If `work` returns an iterator, it is drained, one step after the other."""

    def __init__(
        self, work: Work, step: Callable | None = None, done: Callable | None = None, failed: Callable | None = None
    ) -> None:
        self.work, self.step, self.done, self.failed = work, step, done, failed
        self.busy = True  # for the window: neither at its end nor stopped
        self.stopped = False
        self.error: tuple[BaseException, str] | None = None
        self.gone = threading.Event()  # its thread has ended
        self._mail: list[Any] = []  # at most one: the newest step, not yet looked at
        self._result: Any = None

    @property
    def waiting(self) -> bool:
        """Whether the window has not looked at the last step yet, so that the next can be skipped."""
        return bool(self._mail)

    def take(self) -> Any:
        """The newest step, once; None if there is nothing new."""
        return self._mail.pop() if self._mail else None

    def stop(self) -> Any:
        """No word from this task any more. Returns a step that nobody has seen yet, or None."""
        self.stopped = True
        self._forget()
        return self.take()

    def _forget(self) -> None:
        """Let all go that it holds of the window and of pictures, on the window's thread: the task's own may be the
        last to hold it, and those who had the task begun hold it on.
        """
        self.busy = False
        self.work = self.step = self.done = self.failed = self._result = self.error = None

    def run(self, heavy: bool) -> None:
        """On its thread, from beginning to end."""
        if heavy:
            with contextlib.suppress(AttributeError, OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        with _heavy if heavy else contextlib.nullcontext():
            self._work()
        self.gone.set()

    def _work(self) -> None:
        threads.stop_when(lambda: self.stopped)
        work = self.work
        if self.stopped:  # `work` is gone only after it has been
            return
        try:
            result = work(self)
            if not isinstance(result, Iterator):
                self._result = result
                return
            for value in result:
                if self.stopped:
                    break
                self._mail[:] = [value]
        except threads.Cancelled:
            pass
        except BaseException as error:  # the window must live, and say what happened
            self.error = error, traceback.format_exc()

    def deliver(self) -> bool:
        """On the window's thread: hand over what there is; true when there will be no more."""
        over = self.gone.is_set()  # before the mail, because the last step comes before the end
        mail = self.take()
        if mail is not None and self.step is not None and not self.stopped:
            self.step(mail)
        if not over or self.stopped:
            return self.stopped
        done, failed, result, error = self.done, self.failed, self._result, self.error
        self._forget()
        if error is not None:
            if failed is not None:
                failed(*error)
        elif done is not None:
            done(result)
        return True


IDLE = Task(lambda _: None)  # what those hold who have no task: it is over
IDLE.stop()


class Background(QObject):
    """The tasks of a window."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks: list[Task] = []
        self._threads: list[Task] = []  # with those that were stopped and have not ended yet
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH))
        self._timer = QTimer(self, interval=POLL_MS, timeout=self._poll)

    def start(self, work: Work, *, heavy: bool = False, **calls: Callable) -> Task:
        """Begin `work(task)`; `step`, `done(result)` and `failed(error, traceback)` are called on this thread."""
        task = Task(work, **calls)
        self._tasks.append(task)
        self._threads = [t for t in self._threads if not t.gone.is_set()] + [task]
        _thread.start_new_thread(task.run, (heavy,))  # threading.Thread.start would wait until a busy machine runs it
        self._timer.start()
        return task

    def _poll(self) -> None:
        for task in list(self._tasks):
            over = True  # a task whose callback fails is not asked again
            try:
                over = task.deliver()
            except Exception:
                sys.excepthook(*sys.exc_info())
            if over and task in self._tasks:
                self._tasks.remove(task)
        if not self._tasks:
            self._timer.stop()

    def stop_all(self, seconds: float = 0.0) -> bool:
        """Stop everything; true if all threads ended within so many seconds."""
        for task in self._tasks:
            task.stop()
        self._tasks.clear()
        self._timer.stop()
        until = time.monotonic() + seconds
        return all(task.gone.wait(max(until - time.monotonic(), 0)) for task in self._threads)

    def wait_for(self, ready: Callable[[], bool], seconds: float) -> None:
        """Keep looking until something is done; for the last moments of a window."""
        until = time.monotonic() + seconds
        while not ready() and time.monotonic() < until:
            time.sleep(POLL_MS / 1000)
            self._poll()

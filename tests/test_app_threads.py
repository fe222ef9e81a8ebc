"""What keeps Qt alive while threads work: who collects garbage, and who holds the window."""

import gc
import threading
import weakref

import hands
from qtpy.QtCore import QObject


class Knot(QObject):
    """A Qt object that only the cycle collector can free."""

    def __init__(self, freed):
        super().__init__()
        self.itself = self
        weakref.finalize(self, lambda: freed.append(threading.get_ident()))


def rubbish(count):
    for _ in range(count):
        knot = []
        knot.append(knot)


def test_only_the_windows_thread_collects_garbage(window, qtbot):
    freed = []
    for _ in range(50):
        Knot(freed)
    done = []
    window.background.start(lambda _: rubbish(100_000), done=done.append)
    qtbot.waitUntil(lambda: bool(done), timeout=hands.LONG)
    qtbot.waitUntil(lambda: len(freed) == 50, timeout=hands.LONG)  # and it does collect
    assert set(freed) == {threading.get_ident()}


def test_what_python_thinks_is_due_is_collected(window):
    from denoiser_app.collector import collect

    assert not gc.isenabled()
    gc.collect()
    rubbish(2 * gc.get_threshold()[0])
    collect()
    assert gc.get_count()[0] < gc.get_threshold()[0]


def test_a_task_that_is_over_holds_nothing_of_the_window(window, qtbot):
    go, held = threading.Event(), QObject()
    alive = weakref.ref(held)
    task = window.background.start(lambda _: go.wait(60), done=held.objectName)  # the last to hold it
    del held
    assert alive() is not None
    task.stop()
    assert alive() is None  # and not when its thread ends, on that thread
    go.set()


def test_a_window_on_the_screen_is_held(desk, qtbot, settings):
    from denoiser_app.window import Window

    def show():
        window = Window(settings)
        window.show()
        return weakref.ref(window)

    window = show()
    gc.collect()
    assert window() is not None
    window().close()
    qtbot.waitUntil(lambda: window() is None or gc.collect() < 0, timeout=hands.LONG)

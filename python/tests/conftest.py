"""What the tests share: a server of their own, and the marks fast and slow."""

import os
import re
import subprocess
import threading

import pytest

# Not CODBAND_…: the server takes such variables as settings.
PROGRAM = os.environ.get("TESTED_CODBAND", "codband")


def pytest_configure(config):
    config.addinivalue_line("markers", "fast: runs with every build")
    config.addinivalue_line("markers", "slow: takes longer")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.fast)


def program_environment():
    """Without the sanitizers of this process (scripts/python_asan.sh): a program that was built without them hangs when
    it stops, and one that was built with them has its own."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


class Server:
    """The real program on a port of its own; may be killed and started again on the same one."""

    def __init__(self, directory, *flags):
        self._directory = directory
        self._flags = flags
        self._port = 0
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            [PROGRAM, "serve", "--data", str(self._directory), "--listen", f"127.0.0.1:{self._port}",
             *self._flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=program_environment())
        for line in self._process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self._port = int(found.group(1))
                break
        else:
            raise RuntimeError(f"the server ended with {self._process.wait()}")
        # Nobody reads the rest: keep the pipe empty.
        threading.Thread(target=self._process.stdout.read, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()


@pytest.fixture
def server(tmp_path):
    running = Server(tmp_path / "data")
    yield running
    running.stop()

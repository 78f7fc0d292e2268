"""A GPU on the host: kernels as verax writes them, compiled by the host's C++ compiler, thread by thread.

It shows that the text is right (indices, barriers, sums, formulas); only speed and rounding are the host's.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest

from verax.wings.gpu import driver, places
from verax.wings.gpu.driver import Args
from verax.wings.gpu.places import Place, Scratch, View

COMPILER = shutil.which("g++") or shutil.which("clang++")
FOLDER = Path(__file__).parent / "emulation"
_HEADERS = "".join(path.read_text() for path in sorted(FOLDER.iterdir()))
_OPTIONS = ["-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-w"]


def _name(text):
    """A name for what is compiled from a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class EmulatedDevice:
    """What `verax.wings.gpu.driver.Device` does, on the host."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.libraries = {}
        self.launches = []

    def prepare(self, source, shared, *names):
        if source in self.libraries:
            return
        assert shared <= 32768 * 8
        calls = "\n".join(
            f'extern "C" void run_{name}(unsigned blocks, unsigned threads, const Args* args) '
            f"{{ run({name}, blocks, threads, args); }}"
            for name in names
        )
        text = f'#include "gpu.h"\n{source}\n#include "launch.h"\n{calls}\n'.replace(
            "extern __shared__ double arena[];", ""
        )
        # Every worker and every later run takes what one has compiled from the same text.
        library = self.folder / f"{_name(text + _HEADERS)}.so"
        if not library.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as own:
                file, made = Path(own) / "kernels.cpp", Path(own) / "kernels.so"
                file.write_text(text)
                places = [f"-I{self.headers()}", f"-I{FOLDER}"]
                subprocess.run(
                    [COMPILER, *_OPTIONS, "-shared", *places, str(file), "-o", str(made)], check=True
                )
                made.replace(library)
        self.libraries[source] = ctypes.CDLL(str(library))

    def headers(self):
        """A folder with the header as g++ has read it, which takes as long as the kernels of one text."""
        folder = self.folder / f"{_name(_HEADERS)}-headers"
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as own:
                made = Path(own) / "headers"
                made.mkdir()
                if Path(COMPILER).name == "g++":
                    header = ["-x", "c++-header", str(FOLDER / "gpu.h"), "-o", str(made / "gpu.h.gch")]
                    subprocess.run([COMPILER, *_OPTIONS, *header], check=True)
                with suppress(OSError):  # another worker was faster
                    made.rename(folder)
        return folder

    def current(self):
        return nullcontext()

    def launch(self, source, name, blocks, threads, shared, stream, args):
        self.launches.append(name)
        assert isinstance(args, Args)
        getattr(self.libraries[source], f"run_{name}")(blocks, threads, ctypes.byref(args))

    def clear(self, pointer, size, stream):
        ctypes.memset(pointer, 0, size)

    def fetch(self, target, pointer, stream):
        ctypes.memmove(target.ctypes.data, pointer, target.nbytes)

    def borrow(self, host, memory):
        # Whatever is not written shows.
        self.room, self.memory = np.full(host // 8, np.nan), np.full(memory // 8, np.nan)
        return driver.Room(self.room.ctypes.data, self.memory.ctypes.data)

    def receive(self, n, stream):
        return self.room[:n].copy()

    def give_back(self):
        del self.room, self.memory

    def copy_over(self, pointer, source, stream):
        ctypes.memmove(pointer, source.ctypes.data, source.nbytes)

    def place(self):
        """Where tensors of PyTorch on the host are."""
        return Place(self, 0, view, scratch)


def view(t):
    return View(t.data_ptr(), str(t.dtype).removeprefix("torch."), tuple(t.shape), tuple(t.stride()))


def scratch(size):
    # Whatever is not written shows.
    memory = np.full(size, 0xFF, np.uint8)
    return Scratch(memory.ctypes.data, memory)


# ---- fixtures ----------------------------------------------------------------------------------


def _torch():
    return pytest.importorskip("torch")


class Gpu:
    """A device on which kernels run, and what was launched there."""

    def __init__(self, name, launches):
        self.name, self.launches = name, launches

    def put(self, x, dtype=None):
        x = _torch().as_tensor(x) if dtype is None else _torch().as_tensor(x).to(dtype)
        return x.cuda() if self.name == "cuda" else x


@pytest.fixture(scope="session")
def emulated(pytestconfig, tmp_path_factory):
    if COMPILER is None:
        pytest.skip("there is no C++ compiler to emulate a GPU with")
    kept = getattr(pytestconfig, "cache", None)
    return EmulatedDevice(kept.mkdir("emulator") if kept else tmp_path_factory.mktemp("emulator"))


@pytest.fixture(params=["emulated", "cuda"])
def gpu(request, change, monkeypatch):
    launches = []
    change(gpu_from=0)
    if request.param == "emulated":
        device = request.getfixturevalue("emulated")
        monkeypatch.setattr(device, "launches", launches)
        monkeypatch.setattr(places, "locate", lambda _: device.place())
    else:
        if not _torch().cuda.is_available():
            pytest.skip("torch sees no CUDA device")
        launch = driver.Device.launch

        def spy(self, source, name, *others):
            launches.append(name)
            return launch(self, source, name, *others)

        monkeypatch.setattr(driver.Device, "launch", spy)
    return Gpu(request.param, launches)


# Emulated threads take turns: fewer sizes there.
def only_on_gpu(gpu, condition):
    if gpu.name == "emulated" and not condition:
        pytest.skip("one of this kind is enough in the emulator")

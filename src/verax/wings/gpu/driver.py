"""A GPU through NVIDIA's driver and run-time compiler, which CUDA builds of PyTorch, CuPy and JAX bring."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from glob import glob
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from verax.errors import VeraxError

_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76
_MOST_SHARED = 8
# Below this, shared memory needs no leave.
_FREE_SHARED = 48 * 2**10
# Bytes of the host's memory that results are written to, and of the device's memory for the sums of blocks.
_ROOM, _MEMORY = 2**16, 2**20
# Formulas are rounded as NumPy rounds them; sums ask for fused multiply-adds by name.
_OPTIONS = (b"--std=c++17", b"--fmad=false")


_Pointer = ctypes.c_void_p * 1


def _members(names: str, kind: Any) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Args(ctypes.Structure):
    """The arguments of all kernels, as `struct Args` of numbers.cu has them."""

    _fields_ = (
        *_members("p", ctypes.c_void_p),
        *_members("row_stride column_stride", ctypes.c_int64),
        *_members("y", ctypes.c_void_p),
        *_members("y_stride", ctypes.c_int64),
        *_members("w", ctypes.c_void_p),
        *_members("w_stride n step ignore parts probing", ctypes.c_int64),
        *_members("clear scale limb", ctypes.c_double),
        *_members("shift heaviest partial totals cells", ctypes.c_void_p),
        *_members("blocks", ctypes.c_int64),
        *_members("class_weights out upstream", ctypes.c_void_p),
        *_members("upstream_stride", ctypes.c_int64),
        *_members("divisor gradient", ctypes.c_void_p),
        *_members("mean", ctypes.c_int64),
        *_members("state_sums state_counts state_squares state_cells state_squared_cells", ctypes.c_void_p),
        *_members("ended result", ctypes.c_void_p),
        *_members("n_result", ctypes.c_int64),
        *_members("zeroed", ctypes.c_void_p),
        *_members("n_zeroed", ctypes.c_int64),
        *_members("state_first", ctypes.c_void_p),
        *_members("update", ctypes.c_int64),
    )


class Room(NamedTuple):
    """Memory that a device lends for one pass: of the host, which kernels write to, and of the device."""

    host: int
    memory: int


class CompilerMissingError(VeraxError):
    """No usable NVIDIA driver or compiler."""


class Device:
    """One GPU: compiles, launches, copies back. Streams and memory belong to the caller's library."""

    def __init__(self, ordinal: int) -> None:
        self._cuda, self._compiler = _driver(), _compiler()
        # Those that every call needs.
        self._synchronize, self._launch = self._cuda.cuStreamSynchronize, self._cuda.cuLaunchKernel
        self._push, self._pop = self._cuda.cuCtxPushCurrent_v2, self._cuda.cuCtxPopCurrent_v2
        self._popped = ctypes.byref(ctypes.c_void_p())
        handle, self._context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(handle), ordinal)
        # The context that PyTorch, CuPy and JAX use.
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), handle)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(major), _COMPUTE_MAJOR, handle)
        self._call("cuDeviceGetAttribute", ctypes.byref(minor), _COMPUTE_MINOR, handle)
        self._architecture = f"sm_{major.value}{minor.value}"
        with self:
            room = ctypes.c_void_p()
            self._call("cuMemAllocHost_v2", ctypes.byref(room), ctypes.c_size_t(_ROOM))
            memory = self.allocate(_MEMORY)
        assert room.value is not None
        self._lent, self._lock = Room(room.value, memory), Lock()
        self._numbers = np.ctypeslib.as_array((ctypes.c_double * (_ROOM // 8)).from_address(room.value))
        self._functions: dict[tuple[str, str], ctypes.c_void_p] = {}
        self._modules: dict[str, ctypes.c_void_p] = {}

    def _call(self, function: str, *arguments: Any) -> None:
        self._check(getattr(self._cuda, function)(*arguments), function)

    def _check(self, status: int, function: str) -> None:
        if status != 0:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            raise VeraxError(f"{function} failed on the GPU: {(text.value or b'unknown error').decode()}.")

    def current(self) -> Device:
        """A context in which driver calls are about this GPU."""
        return self

    def __enter__(self) -> None:
        self._check(self._push(self._context), "cuCtxPushCurrent")

    def __exit__(self, *_: object) -> None:
        self._check(self._pop(self._popped), "cuCtxPopCurrent")

    def prepare(self, source: str, shared: int, *names: str) -> None:
        """Compile the kernels of a text, once."""
        if (source, names[0]) in self._functions:
            return
        with self.current():
            module = ctypes.c_void_p()
            binary = _compiled(self._compiler, source, self._architecture)
            self._call("cuModuleLoadData", ctypes.byref(module), binary)
            self._modules[source] = module
            for name in names:
                function = ctypes.c_void_p()
                self._call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
                if shared > _FREE_SHARED:
                    self._call("cuFuncSetAttribute", function, _MOST_SHARED, shared)
                self._functions[source, name] = function

    def launch(
        self, source: str, name: str, blocks: int, threads: int, shared: int, stream: int, args: Args
    ) -> None:
        """Run a kernel that was prepared; in the current context, on a stream of the caller."""
        function, pointers = self._functions[source, name], _Pointer(ctypes.addressof(args))
        status = self._launch(function, blocks, 1, 1, threads, 1, 1, shared, stream, pointers, None)
        self._check(status, "cuLaunchKernel")

    def clear(self, pointer: int, size: int, stream: int) -> None:
        """Set memory to zero."""
        self._call("cuMemsetD8Async", pointer, 0, size, stream)

    def borrow(self, host: int, memory: int) -> Room | None:
        """Borrow these numbers of bytes of the host and of the device; None if they are taken or too few."""
        if host > _ROOM or memory > _MEMORY or not self._lock.acquire(blocking=False):
            return None
        return self._lent

    def receive(self, n: int, stream: int) -> Any:
        """Wait for a stream; the first `n` numbers of the host's memory that was borrowed."""
        self._check(self._synchronize(stream), "cuStreamSynchronize")
        return self._numbers[:n].copy()

    def give_back(self) -> None:
        """End the use of the memory that was borrowed."""
        self._lock.release()

    def fetch(self, target: Any, pointer: int, stream: int) -> None:
        """Wait for a stream, and copy to a NumPy array."""
        # Into memory that the GPU knows, where it is free: a copy to other memory takes detours.
        room = self.borrow(target.nbytes, 0)
        try:
            place = target.ctypes.data if room is None else room.host
            self._call("cuMemcpyDtoHAsync_v2", place, pointer, target.nbytes, stream)
            self._call("cuStreamSynchronize", stream)
            if room is not None:
                ctypes.memmove(target.ctypes.data, room.host, target.nbytes)
        finally:
            if room is not None:
                self.give_back()

    def copy_over(self, pointer: int, source: Any, stream: int) -> None:
        """Copy a NumPy array to the GPU; it has been read when this returns."""
        self._call("cuMemcpyHtoDAsync_v2", pointer, source.ctypes.data, source.nbytes, stream)

    def allocate(self, size: int) -> int:
        """Allocate memory, for libraries that lend none."""
        pointer = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer.value

    def free(self, pointer: int) -> None:
        """Free allocated memory; may be called so late that there is no GPU any more."""
        if self._cuda.cuCtxPushCurrent_v2(self._context) == 0:
            self._cuda.cuMemFree_v2(ctypes.c_uint64(pointer))
            self._cuda.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))


@cache
def device(ordinal: int) -> Device | None:
    """A GPU by its number; None, with a warning, where it cannot be compiled for."""
    try:
        return Device(ordinal)
    except VeraxError as error:
        warnings.warn(
            f"Rows on a GPU are scored by array calls, which is many times slower than one kernel: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None


@cache
def _driver() -> Any:
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        raise CompilerMissingError("The NVIDIA driver is not installed.") from None
    if library.cuInit(0) != 0:
        raise CompilerMissingError("The NVIDIA driver did not start.")
    # Types that are known beforehand make calls quicker.
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.cuLaunchKernel.argtypes = [pointer, *[ctypes.c_uint] * 7, *[pointer] * 3]
    library.cuMemsetD8Async.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, size, pointer]
    library.cuMemcpyDtoHAsync_v2.argtypes = [pointer, ctypes.c_uint64, size, pointer]
    library.cuMemcpyHtoDAsync_v2.argtypes = [ctypes.c_uint64, pointer, size, pointer]
    library.cuStreamSynchronize.argtypes = [pointer]
    return library


@cache
def _compiler() -> Any:
    for path in _places_of_compiler():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise CompilerMissingError(
        "NVRTC, NVIDIA's run-time compiler, was not found (pip install nvidia-cuda-nvrtc)."
    )


def _places_of_compiler() -> Iterator[str]:
    """Where NVRTC may be: beside PyTorch, CuPy or JAX, in a CUDA toolkit, or where the system looks."""
    pattern = "nvrtc64_*.dll" if sys.platform == "win32" else "libnvrtc.so*"
    folders = [
        os.path.join(base, *inner)
        for base in sys.path
        for inner in (("nvidia", "*", "lib"), ("nvidia", "*", "bin"), ("torch", "lib"))
    ]
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        root = os.environ.get(variable)
        folders += [os.path.join(root, inner) for inner in ("lib64", "bin")] if root else []
    folders.append("/usr/local/cuda/lib64")
    for folder in folders:
        yield from (path for path in sorted(glob(os.path.join(folder, pattern))) if "alt" not in path)
    library = ctypes.util.find_library("nvrtc")
    if library is not None:
        yield library


def _compiled(compiler: Any, source: str, architecture: str) -> bytes:
    program = ctypes.c_void_p()
    compiler.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"rows.cu", 0, None, None)
    options = (*_OPTIONS, f"--gpu-architecture={architecture}".encode())
    status = compiler.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    try:
        if status != 0:
            compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            compiler.nvrtcGetProgramLog(program, log)
            raise CompilerMissingError(f"NVRTC cannot compile for {architecture}: {log.value.decode()[:500]}")
        compiler.nvrtcGetCUBINSize(program, ctypes.byref(size))
        binary = ctypes.create_string_buffer(size.value)
        compiler.nvrtcGetCUBIN(program, binary)
        return binary.raw
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))

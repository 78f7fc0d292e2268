"""PyTorch, CuPy and JAX arrays as memory on a GPU: pointers, types, strides, and the caller's stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from verax.inputs.arrays import Array
from verax.wings.gpu.driver import Device, device

# NVIDIA's name for the stream that waits for all others.
_DEFAULT_STREAM = 1


class View(NamedTuple):
    """Memory that is read where it is.

    Attributes
    ----------
    pointer : int
        Its address.
    dtype : str
        The name of its type.
    shape, strides : tuple of int
        As NumPy has them; strides count elements.
    """

    pointer: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def layout(rows: View) -> dict[str, Any]:
    """The layout of (n, K) rows in memory, as options of `RowLayout`."""
    columns = rows.strides[1] != 1
    return {"columns": columns, "dense": not columns and rows.strides[0] == rows.shape[1]}


class Scratch:
    """Memory for a kernel's results, as long as this object lives."""

    pointer: int

    def __init__(self, pointer: int, owner: object, free: Callable[[int], None] | None = None) -> None:
        self.pointer, self._owner, self._free = pointer, owner, free

    def __del__(self) -> None:
        if self._free is not None:
            self._free(self.pointer)


class Place(NamedTuple):
    """A GPU as one library sees it.

    Attributes
    ----------
    device : Device
        The GPU.
    stream : int
        The stream that the library's current calls go to.
    view : callable
        An array of the library as memory; None if it is not on this GPU.
    scratch : callable
        Memory of a given number of bytes.
    """

    device: Device
    stream: int
    view: Callable[[Any], View | None]
    scratch: Callable[[int], Scratch]


def locate(x: Array) -> Place | None:
    """The GPU that holds an array; None if kernels cannot be compiled for it."""
    package = type(x).__module__.partition(".")[0]
    find = {"torch": _of_torch, "cupy": _of_cupy, "jaxlib": _of_jax, "jax": _of_jax}.get(package)
    return None if find is None else find(x)


def _of_torch(x: Any) -> Place | None:
    parts = _torch_gpu(x.device.index) if x.is_cuda else None
    if parts is None:
        return None
    gpu, stream, view, scratch = parts
    return Place(gpu, stream(), view, scratch)


@cache
def _torch_gpu(index: int) -> tuple[Device, Callable[[], int], Any, Any] | None:
    """The parts of a place on a GPU; its stream is looked up in each call."""
    import torch

    gpu = None if torch.version.cuda is None else device(index)
    if gpu is None:
        return None
    here = torch.device("cuda", index)

    def view(t: Any) -> View | None:
        if not isinstance(t, torch.Tensor) or t.device != here:
            return None
        return View(t.data_ptr(), _name_of(t.dtype), tuple(t.shape), t.stride())

    def scratch(size: int) -> Scratch:
        memory = torch.empty(size, dtype=torch.uint8, device=here)
        return Scratch(memory.data_ptr(), memory)

    # What `torch.cuda.current_stream` wraps, at a tenth of its cost.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)

    def stream() -> int:
        return torch.cuda.current_stream(index).cuda_stream if raw is None else raw(index)

    return gpu, stream, view, scratch


@cache
def _name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _of_cupy(x: Any) -> Place | None:
    import cupy

    gpu = None if cupy.cuda.runtime.is_hip else device(x.device.id)
    if gpu is None:
        return None

    def view(t: Any) -> View | None:
        if not isinstance(t, cupy.ndarray) or t.device != x.device:
            return None
        strides = tuple(stride // t.itemsize for stride in t.strides)
        return View(t.data.ptr, t.dtype.name, tuple(t.shape), strides)

    def scratch(size: int) -> Scratch:
        with x.device:
            memory = cupy.empty(size, cupy.uint8)
        return Scratch(memory.data.ptr, memory)

    with x.device:
        stream = cupy.cuda.get_current_stream().ptr
    return Place(gpu, stream, view, scratch)


def _of_jax(x: Any) -> Place | None:
    import jax

    def is_here(t: Any) -> bool:
        return isinstance(t, jax.Array) and not isinstance(t, jax.core.Tracer) and len(t.devices()) == 1

    if not is_here(x):
        return None
    (where,) = x.devices()
    if where.platform != "gpu" or "rocm" in str(where.client.platform_version).lower():
        return None
    gpu = device(where.local_hardware_id or 0)
    if gpu is None:
        return None

    def view(t: Any) -> View | None:
        if not is_here(t) or t.devices() != {where}:
            return None
        # JAX has streams of its own and does not name them; its arrays have their rows one after the other.
        t.block_until_ready()
        strides = [1]
        for length in reversed(t.shape[1:]):
            strides.insert(0, strides[0] * length)
        return View(t.unsafe_buffer_pointer(), str(t.dtype), tuple(t.shape), tuple(strides[: t.ndim]))

    def scratch(size: int) -> Scratch:
        return Scratch(gpu.allocate(size), gpu, gpu.free)

    return Place(gpu, _DEFAULT_STREAM, view, scratch)

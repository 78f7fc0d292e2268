"""Values that an object computes once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801
    """`functools.cached_property` without its lock.

    Up to Python 3.11 that lock is shared by all instances, and a process that is forked while another
    thread holds it waits for it forever. Without a lock two threads may both compute a value; the first
    to finish decides it.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        # Later reads find the value in the instance itself and do not come here.
        return vars(instance).setdefault(self.name, self.compute(instance))

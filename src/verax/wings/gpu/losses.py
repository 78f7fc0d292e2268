"""The losses of rows of logits on a GPU, and their gradients: one kernel each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from verax.wings.gpu.driver import Args
from verax.wings.gpu.places import Place, View, layout
from verax.wings.gpu.printer import Program, RowLayout, gradient_program, loss_program

# Blocks that multiply a gradient.
_RESCALING = 1056


@lru_cache(maxsize=128)
def _loss(rule: Any, form: RowLayout, by_row: bool) -> Program | None:
    return loss_program(rule, form, by_row=by_row)


@lru_cache(maxsize=128)
def _gradient(rule: Any, form: RowLayout, with_loss: bool) -> Program | None:
    return gradient_program(rule, form, with_loss=with_loss)


@dataclass(frozen=True)
class LossRows:
    """Logits, outcomes and weights in the memory of a GPU.

    Attributes
    ----------
    place : Place
        Where they are.
    z, y, w : View
        (n, K) logits, (n,) outcomes and (n,) weights or None.
    class_weights : View, optional
        (K,) weights of the outcome classes, in the type that is computed in.
    ignore : int, optional
        The outcome of rows to leave out.
    """

    place: Place
    z: View
    y: View
    w: View | None
    class_weights: View | None
    ignore: int | None

    @property
    def form(self) -> RowLayout:
        return RowLayout(
            self.z.shape[1],
            self.z.dtype,
            self.y.dtype,
            None if self.w is None else self.w.dtype,
            **layout(self.z),
            logits=True,
            ignore=self.ignore is not None,
            classed=self.class_weights is not None,
            computed="float64" if self.z.dtype == "float64" else "float32",
        )

    @property
    def is_plain(self) -> bool:
        """Whether loss and gradient can be computed at once: no weights, and a type that holds both."""
        weighted = self.w is not None or self.class_weights is not None or self.ignore is not None
        return not weighted and self.z.dtype in ("float32", "float64")

    def _args(self, program: Program, **others: Any) -> Args:
        return Args(
            p=self.z.pointer,
            row_stride=self.z.strides[0],
            column_stride=self.z.strides[1],
            y=self.y.pointer,
            y_stride=self.y.strides[0],
            w=None if self.w is None else self.w.pointer,
            w_stride=0 if self.w is None else self.w.strides[0],
            n=self.z.shape[0],
            ignore=self.ignore or 0,
            scale=1.0,
            blocks=program.blocks(self.z.shape[0]),
            class_weights=None if self.class_weights is None else self.class_weights.pointer,
            **others,
        )

    def _launch(self, program: Program, names: tuple[str, ...], args: Args) -> None:
        device, stream = self.place.device, self.place.stream
        device.prepare(program.source, program.shared, *names)
        with device.current():
            device.launch(
                program.source, names[0], args.blocks, program.threads, program.shared, stream, args
            )
            for name in names[1:]:
                device.launch(program.source, name, 1, 32, 0, stream, args)

    def write(self, rule: Any, out: int) -> bool:
        """Write the loss of each row, times its weight, to `out`; False where there is no kernel."""
        program = _loss(rule, self.form, True)
        if program is None:
            return False
        self._launch(program, ("forward",), self._args(program, out=out))
        return True

    def total(self, rule: Any, out: int, weight: int, *, mean: bool) -> bool:
        """Write the weighted sum or mean of all losses to `out`, and the sum of the weights to `weight`."""
        program = _loss(rule, self.form, False)
        if program is None:
            return False
        room = self.place.scratch(16 * program.blocks(self.z.shape[0]))
        args = self._args(program, out=out, partial=room.pointer, totals=weight, mean=int(mean))
        self._launch(program, ("forward", "settle"), args)
        return True

    def with_gradient(
        self, rule: Any, out: int, weight: int, gradient: int, *, mean: bool
    ) -> Callable[[int], None] | None:
        """As `total`, and write the gradient, but for the factor from above, to `gradient`.

        Gives the function that multiplies it by that factor, a number at some address; None where there is no
        kernel.
        """
        program = _gradient(rule, self.form, True)
        if program is None:
            return None
        room = self.place.scratch(16 * program.blocks(self.z.shape[0]))
        args = self._args(
            program, out=out, partial=room.pointer, totals=weight, mean=int(mean), gradient=gradient
        )
        device, stream, source = self.place.device, self.place.stream, program.source
        device.prepare(source, program.shared, "backward", "settle", "rescale")
        with device.current():
            device.launch(source, "backward", args.blocks, program.threads, program.shared, stream, args)
            device.launch(source, "settle", 1, 32, 0, stream, args)

        def rescale(upstream: int) -> None:
            args.upstream = upstream
            with device.current():
                device.launch(source, "rescale", _RESCALING, 256, 0, stream, args)

        return rescale

    def gradient(self, rule: Any, upstream: View, weight: int | None, out: int) -> bool:
        """Write the gradient in the logits to `out`: of all losses over `weight`, times `upstream`."""
        program = _gradient(rule, self.form, False)
        if program is None:
            return False
        stride = upstream.strides[0] if upstream.shape else 0
        args = self._args(
            program, upstream=upstream.pointer, upstream_stride=stride, divisor=weight, gradient=out
        )
        self._launch(program, ("backward",), args)
        return True

"""Compiled sums over pairs of models on the same rows."""

from __future__ import annotations

from typing import Any

from verax.kernels.functions import compiled, plus

# How many rows of all models are multiplied at a time: the nearest caches hold them.
STRIP = 256
# Models are multiplied by fours; those behind the last are zero.
FOUR = 4


@compiled
def add_products(
    values: Any, n: int, means: Any, weights: Any, work: Any, alone: Any, apart: Any, cross: Any
) -> None:
    """Add sums over `n` rows of the deviations d of M models from their means, for each of several columns.

    `values` has the numbers by column, model and row. `alone` has the sums of w*d and w*d*d by column and
    model. Unless `cross` is empty, `apart` has the same of e, which is d minus that of the first model, and
    `cross` the sums of w*e*f for every two models, the first before the second: what models have in common
    is no part of their differences. An empty `weights` means ones. `work` has two arrays of STRIP numbers for
    each model. The number of models there is a multiple of FOUR; those behind the last are zero.
    """
    n_models, weighted = means.shape[1], 1 if weights.size > 0 else 0
    for c in range(values.shape[0]):
        for start in range(0, n, STRIP):
            size = min(STRIP, n - start)
            base = values[c, 0, start : start + size]
            for m in range(n_models):
                column, mean, shift = (
                    values[c, m, start : start + size],
                    means[c, m],
                    means[c, m] - means[c, 0],
                )
                total, square, first, second = 0.0, 0.0, 0.0, 0.0
                if cross.shape[1] > 0:
                    d = work[0, m, 0:size]
                    if weights.size > 0:
                        w, e = weights[start : start + size], work[1, m, 0:size]
                        for i in range(size):
                            x, z = column[i] - mean, (column[i] - base[i]) - shift
                            product, other = w[i] * x, w[i] * z
                            d[i] = z
                            e[i] = other
                            total = plus(total, product)
                            square = plus(square, product * x)
                            first = plus(first, other)
                            second = plus(second, other * z)
                    else:
                        for i in range(size):
                            x, z = column[i] - mean, (column[i] - base[i]) - shift
                            d[i] = z
                            total = plus(total, x)
                            square = plus(square, x * x)
                            first = plus(first, z)
                            second = plus(second, z * z)
                    apart[0, c, m] += first
                    apart[1, c, m] += second
                elif weights.size > 0:
                    w = weights[start : start + size]
                    for i in range(size):
                        x = column[i] - mean
                        product = w[i] * x
                        total = plus(total, product)
                        square = plus(square, product * x)
                else:
                    for i in range(size):
                        x = column[i] - mean
                        total = plus(total, x)
                        square = plus(square, x * x)
                alone[0, c, m] += total
                alone[1, c, m] += square
            for a in range(0, cross.shape[1], FOUR):
                _multiply_within(work, weighted, a, size, cross, c)
                for b in range(a + FOUR, cross.shape[1], FOUR):
                    _multiply(work, weighted, a, b, size, cross, c)


def _multiply(work: Any, weighted: int, a: int, b: int, size: int, cross: Any, c: int) -> None:
    """Add the products of four models with four."""
    x0, x1 = work[weighted, a, 0:size], work[weighted, a + 1, 0:size]
    x2, x3 = work[weighted, a + 2, 0:size], work[weighted, a + 3, 0:size]
    y0, y1 = work[0, b, 0:size], work[0, b + 1, 0:size]
    y2, y3 = work[0, b + 2, 0:size], work[0, b + 3, 0:size]
    s00, s01, s02, s03 = 0.0, 0.0, 0.0, 0.0
    s10, s11, s12, s13 = 0.0, 0.0, 0.0, 0.0
    s20, s21, s22, s23 = 0.0, 0.0, 0.0, 0.0
    s30, s31, s32, s33 = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        s00, s01 = plus(s00, x0[i] * y0[i]), plus(s01, x0[i] * y1[i])
        s02, s03 = plus(s02, x0[i] * y2[i]), plus(s03, x0[i] * y3[i])
        s10, s11 = plus(s10, x1[i] * y0[i]), plus(s11, x1[i] * y1[i])
        s12, s13 = plus(s12, x1[i] * y2[i]), plus(s13, x1[i] * y3[i])
        s20, s21 = plus(s20, x2[i] * y0[i]), plus(s21, x2[i] * y1[i])
        s22, s23 = plus(s22, x2[i] * y2[i]), plus(s23, x2[i] * y3[i])
        s30, s31 = plus(s30, x3[i] * y0[i]), plus(s31, x3[i] * y1[i])
        s32, s33 = plus(s32, x3[i] * y2[i]), plus(s33, x3[i] * y3[i])
    cross[c, a, b] += s00
    cross[c, a, b + 1] += s01
    cross[c, a, b + 2] += s02
    cross[c, a, b + 3] += s03
    cross[c, a + 1, b] += s10
    cross[c, a + 1, b + 1] += s11
    cross[c, a + 1, b + 2] += s12
    cross[c, a + 1, b + 3] += s13
    cross[c, a + 2, b] += s20
    cross[c, a + 2, b + 1] += s21
    cross[c, a + 2, b + 2] += s22
    cross[c, a + 2, b + 3] += s23
    cross[c, a + 3, b] += s30
    cross[c, a + 3, b + 1] += s31
    cross[c, a + 3, b + 2] += s32
    cross[c, a + 3, b + 3] += s33


def _multiply_within(work: Any, weighted: int, a: int, size: int, cross: Any, c: int) -> None:
    """Add the products of every two of four models."""
    x0, x1, x2 = work[weighted, a, 0:size], work[weighted, a + 1, 0:size], work[weighted, a + 2, 0:size]
    y1, y2, y3 = work[0, a + 1, 0:size], work[0, a + 2, 0:size], work[0, a + 3, 0:size]
    s01, s02, s03, s12, s13, s23 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        s01, s02, s03 = plus(s01, x0[i] * y1[i]), plus(s02, x0[i] * y2[i]), plus(s03, x0[i] * y3[i])
        s12, s13, s23 = plus(s12, x1[i] * y2[i]), plus(s13, x1[i] * y3[i]), plus(s23, x2[i] * y3[i])
    cross[c, a, a + 1] += s01
    cross[c, a, a + 2] += s02
    cross[c, a, a + 3] += s03
    cross[c, a + 1, a + 2] += s12
    cross[c, a + 1, a + 3] += s13
    cross[c, a + 2, a + 3] += s23


@compiled
def add_differences(values: Any, n: int, means: Any, weights: Any, pairs: Any, sums: Any) -> None:
    """Add the sums of w*d and w*d*d over `n` rows for some pairs to `sums`, a line each.

    `values` has the numbers by column, model and row; `pairs` the column and the two models of each pair. d
    is the difference of the two minus that of their means; an empty `weights` means ones.
    """
    for start in range(0, n, STRIP):
        size = min(STRIP, n - start)
        for k in range(pairs.shape[0]):
            c, a, b = pairs[k, 0], pairs[k, 1], pairs[k, 2]
            one, other = values[c, a, start : start + size], values[c, b, start : start + size]
            shift = means[c, a] - means[c, b]
            first, second = 0.0, 0.0
            if weights.size > 0:
                w = weights[start : start + size]
                for i in range(size):
                    d = (one[i] - other[i]) - shift
                    weighted = w[i] * d
                    first = plus(first, weighted)
                    second = plus(second, weighted * d)
            else:
                for i in range(size):
                    d = (one[i] - other[i]) - shift
                    first = plus(first, d)
                    second = plus(second, d * d)
            sums[k, 0] += first
            sums[k, 1] += second

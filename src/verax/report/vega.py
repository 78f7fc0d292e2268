"""The parts of Vega-Lite specifications, as dictionaries. Tests hold whole charts to the schema."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]


def rows_of(name: str) -> Spec:
    """The data of a layer: rows under this name, which a page adds to its drawings."""
    return {"name": name}


def fixed_rows(*rows: Spec) -> Spec:
    """The data of a layer that is the same on all pages."""
    return {"values": list(rows)}


def number(field: str, **options: Any) -> Spec:
    """A channel of a number."""
    return {"field": field, "type": "quantitative", **options}


def category(field: str, **options: Any) -> Spec:
    """A channel of a name, or of a number that stands for one."""
    return {"field": field, "type": "nominal", **options}


def end(field: str) -> Spec:
    """The other end of a span, which shares the type and scale of the first."""
    return {"field": field}


def either(test: str, yes: object, no: object) -> Spec:
    """A channel of one of two values."""
    return {"condition": {"test": test, "value": yes}, "value": no}


def layer(mark: str, style: str, data: Spec, encoding: Spec, *filters: str, **options: Any) -> Spec:
    """Marks for the rows that pass the filters; the page has the look of a `style`."""
    chosen = {"transform": [{"filter": test} for test in filters]} if filters else {}
    return {"data": data, **chosen, "mark": {"type": mark, "style": style, **options}, "encoding": encoding}


def chart(layers: list[Spec], height: int, *signals: str) -> Spec:
    """Layers in one plot, as wide as its place, with signals that the page sets."""
    return {
        "params": [{"name": name, "value": [] if name == "labels" else 0} for name in signals],
        "layer": layers,
        "width": "container",
        "height": height,
        "background": "transparent",
        "autosize": {"type": "fit-x"},
    }

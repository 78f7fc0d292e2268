"""All commands at once, for those who look at each; the command line imports one when it is called."""

from verax.cli import (
    certify,
    compare,
    decide,
    decompose,
    demo,
    evaluate,
    merge,
    monitor,
    plan,
    recalibrate,
    reproduce,
    retain,
    schema,
    select,
    sets,
    toplist,
    worst,
)
from verax.cli.app import app, run

__all__ = [
    "app",
    "certify",
    "compare",
    "decide",
    "decompose",
    "demo",
    "evaluate",
    "merge",
    "monitor",
    "plan",
    "recalibrate",
    "reproduce",
    "retain",
    "run",
    "schema",
    "select",
    "sets",
    "toplist",
    "worst",
]

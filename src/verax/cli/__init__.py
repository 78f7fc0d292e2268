"""The command line: parse, call, render, exit code. One module per command."""

# Each registers its command.
from verax.cli import certify, compare, demo, evaluate, reproduce, retain, select, toplist, worst
from verax.cli.frame import app, run

__all__ = [
    "app",
    "certify",
    "compare",
    "demo",
    "evaluate",
    "reproduce",
    "retain",
    "run",
    "select",
    "toplist",
    "worst",
]

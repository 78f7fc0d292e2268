"""The command line: parse, call, render, exit code. A module a command; everything else is the library's."""

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

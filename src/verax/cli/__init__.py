"""The command line: parse, call, render, exit code. A module a command; everything else is the library's."""

from verax.cli import certify, evaluate, reproduce, select, toplist  # each registers its command
from verax.cli.frame import app, run

__all__ = ["app", "certify", "evaluate", "reproduce", "run", "select", "toplist"]

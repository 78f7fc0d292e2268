"""All commands. Importing a command registers it with the application."""

from verax.cli import certify, compare, demo, evaluate, reproduce, retain, select, toplist, worst
from verax.cli.app import app, run

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

"""Files written where a test wants them."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    def write(content, name="predictions.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write

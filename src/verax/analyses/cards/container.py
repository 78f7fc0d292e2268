"""Files that hold summaries of the same rows by name: a card, and what else is kept of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from verax._version import __version__
from verax.analyses.cards.fingerprints import Fingerprint
from verax.common.packing import dump, load, refusing
from verax.common.paths import as_path, check_regular
from verax.common.stored import mapping, read_bytes, text, whole
from verax.display.writing import written
from verax.errors import InputError

_KIND = "saved summaries"
# The entry of a card of forecasts, which every file has unless it holds the card of a wing.
CARD = "card"
# Files of 0.2 state no edition of the definitions. In the second, the accuracy and the zero-one loss of top
# lists do not depend on stated confidences.
_EDITION = 2


def write_summaries(
    path: str | Path, summaries: Mapping[str, bytes], parts: Sequence[Fingerprint] = ()
) -> None:
    """Write summaries, each as its bytes, to a file; whole or not at all. `parts` were merged into them."""
    about = {
        "verax": __version__,
        "edition": _EDITION,
        **({"parts": list(map(tuple, parts))} if parts else {}),
    }
    stored = dump(_KIND, {**about, "summaries": dict(summaries)})
    with written(path) as new:
        new.write_bytes(stored)


def read_summaries(path: str | Path) -> dict[str, bytes]:
    """The bytes of each summary in a file, by name; other files are refused."""
    path = as_path(path)
    check_regular(path)
    try:
        values = load(path.read_bytes(), _KIND)
        with refusing("is missing or of another type"):
            return {text(name): read_bytes(summary) for name, summary in mapping(values["summaries"]).items()}
    except InputError as error:
        raise not_saved(path, error) from None


def parts_in(path: str | Path) -> list[Fingerprint]:
    """The parts that were merged into a file; none for a file of one part."""
    stored = load(as_path(path).read_bytes(), _KIND).get("parts", [])
    with refusing("is missing or of another type"):
        return [Fingerprint(text(digest), whole(n_rows)) for digest, n_rows in stored]


def has_old_accuracy(path: str | Path) -> bool:
    """Whether a file of top lists was saved before their accuracy was redefined."""
    return load(as_path(path).read_bytes(), _KIND).get("edition") is None


def not_saved(path: Path, error: InputError) -> InputError:
    """The error about a file that cannot be read as saved summaries."""
    return InputError(
        f"{path} must be a file that verax saved",
        argument="path",
        kind="file",
        found=error.found,
        values=[str(path)],
    )

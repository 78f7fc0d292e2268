r"""Files of predictions: CSV, Parquet, Arrow, JSON Lines and NumPy files, read at once or in batches.

>>> import tempfile, pathlib, verax as vx
>>> from verax import files
>>> path = pathlib.Path(tempfile.mkdtemp(), "predictions.csv")
>>> _ = path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.4,0.6\n")
>>> read = files.read(path)
>>> read.classes, read.y.tolist(), read.p.tolist()
(('cat', 'dog'), [0, 1], [[0.8, 0.2], [0.4, 0.6]])
>>> round(vx.brier(read.y, read.p, classes=read.classes), 3)
0.2
"""

from verax.files.joining import Joined, files_of_one_model, match, name_files, read_together
from verax.files.predictions import Predictions
from verax.files.source import Source, doubts_about, forecasts_of
from verax.files.sources import open, read  # noqa: A004

__all__ = [
    "Joined",
    "Predictions",
    "Source",
    "doubts_about",
    "files_of_one_model",
    "forecasts_of",
    "match",
    "name_files",
    "open",
    "read",
    "read_together",
]

"""Files with a list per row: responses of language models, outputs of classifiers, ranked runs."""

from verax.files.lists.listfile import ListFile
from verax.files.lists.opening import open_lists

__all__ = ["ListFile", "open_lists"]

"""Files with a list per row: responses of language models, outputs of classifiers, ranked runs."""

from verax.files.listfile import ListFile, distributions
from verax.wings.lists.files.opening import holds_lists, open_lists

__all__ = ["ListFile", "distributions", "holds_lists", "open_lists"]

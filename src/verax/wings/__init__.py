"""Wings: a folder for each subject that the core does not know. Folders of this name elsewhere add theirs."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)

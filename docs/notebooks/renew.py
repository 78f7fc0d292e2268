"""Run the notebooks and write them with their outputs: `make notebooks`.

python docs/notebooks/renew.py                     all of them, in place
python docs/notebooks/renew.py --to FOLDER NAME    one of them, to another folder
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
# What depends on the machine and says nothing to readers.
LEFT_OUT = ("execution", "collapsed", "scrolled")


def renew(path: Path, target: Path) -> None:
    """Run one notebook from its first cell to its last, and write it."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        for name in LEFT_OUT:
            cell.metadata.pop(name, None)
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
    nbformat.write(notebook, target)


def joined(outputs: list) -> list:
    """Outputs with the parts of one stream put together: where it is cut depends on timing."""
    found: list = []
    for output in outputs:
        last = found[-1] if found else {}
        if output.output_type == "stream" == last.get("output_type") and output.name == last["name"]:
            last["text"] += output.text
        else:
            found.append(output)
    return found


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Run the notebooks and write them with their outputs.")
    parser.add_argument("names", nargs="*", help="names without .ipynb; all by default")
    parser.add_argument("--to", type=Path, default=HERE, help="where to write them")
    given = parser.parse_args()
    # Figures belong into the notebook, whatever draws them elsewhere.
    os.environ.pop("MPLBACKEND", None)
    names = given.names or sorted(path.stem for path in HERE.glob("*.ipynb"))
    for name in names:
        renew(HERE / f"{name}.ipynb", given.to / f"{name}.ipynb")


if __name__ == "__main__":
    main()

"""Renew the pictures of the report on the site: `python docs/_ext/pictures.py`, after `make test`.

The demo writes its report, Chromium opens it, and four of its sections are photographed, light and dark. The
front page and the README show the verdict beside the reliability diagrams. A palette keeps the pictures
small; together they are below 450 kB.
"""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "_static" / "report"
# The section of the report that each picture begins with, how far below its top, and the height, in pixels.
PICTURES = {"verdict": (-20, 892), "worst": (20, 622), "reliability": (20, 552), "comparison": (20, 454)}
WIDTH, SCALE, COLORS = 840, 1.3, 20
FRONT = (1500, 493)


def photograph(browser, section: str, below: int, height: int) -> Image.Image:
    """A part of the open page."""
    top = browser.run("return document.getElementById(arguments[0]).getBoundingClientRect().top", section)
    clip = {"x": 0, "y": top + below, "width": WIDTH, "height": height, "scale": SCALE}
    taken = browser.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    return Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")


def beside(left: Image.Image, right: Image.Image) -> Image.Image:
    """Two pictures side by side, centred, on the paper of the first."""
    size = left.width + right.width, max(left.height, right.height)
    both = Image.new("RGB", size, left.getpixel((0, 0)))
    for picture, x in ((left, 0), (right, left.width)):
        both.paste(picture, (x, (size[1] - picture.height) // 2))
    return both


def verdict_beside_reliability(browser) -> Image.Image:
    """The verdict, and the diagrams of the section about reliability."""
    height = "return document.getElementById('verdict').getBoundingClientRect().height"
    return beside(
        photograph(browser, "verdict", -20, int(browser.run(height))),
        photograph(browser, "reliability", 20, PICTURES["reliability"][1]),
    )


def main() -> None:
    """Write all pictures, and say how large they are."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browsers import Browser

    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "verax", "demo", "--out", folder], check=True, capture_output=True
        )
        browser = Browser()
        browser.open(Path(folder, "progression.html"))
        browser.resize(WIDTH, 1400)
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.settle()
            for name, place in PICTURES.items():
                picture = photograph(browser, name, *place).quantize(COLORS, dither=Image.Dither.NONE)
                picture.save(FOLDER / f"{name}-{scheme}.png", optimize=True)
            front = verdict_beside_reliability(browser).resize(FRONT, Image.Resampling.LANCZOS)
            front = front.quantize(COLORS, dither=Image.Dither.NONE)
            front.save(FOLDER / f"front-{scheme}.png", optimize=True)
        browser.driver.quit()
    print(f"{sum(path.stat().st_size for path in FOLDER.iterdir()) / 1000:.0f} kB in {FOLDER}")


if __name__ == "__main__":
    main()

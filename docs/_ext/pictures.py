"""Pictures of the report on Home, Start and the README: a whole build takes them anew.

Chromium opens the demo's report, and four of its sections are photographed, light and dark. The front page
and the README show the verdict beside the reliability diagrams. A palette keeps the pictures small. Without
Chromium those of the repository stay. Each picture keeps the words of the verdict, so that a test sees when
those of the repository are old.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from pathlib import Path

from fast import FAST
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from verax.wings.demo.command import write_report
from verax.wings.demo.tour import progression

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "_static" / "report"
# The last part of a section of the report that its picture shows; it begins with the heading.
PICTURES = {"verdict": ".facts", "worst": "li:nth-child(4)", "reliability": ".note", "comparison": ".note"}
WIDTH, SCALE, COLORS = 840, 1.3, 20
FRONT = 1500


def photograph(browser, section: str) -> Image.Image:
    """A section of the open page, from its heading to its last part."""
    edge = "return document.querySelector(arguments[0]).getBoundingClientRect()[arguments[1]]"
    top = browser.run(edge, f"#h-{section}", "top") - 20
    height = browser.run(edge, f"#{section} {PICTURES[section]}", "bottom") + 8 - top
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height, "scale": SCALE}
    taken = browser.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    return Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")


def beside(left: Image.Image, right: Image.Image) -> Image.Image:
    """Two pictures side by side, centred, on the paper of the first."""
    size = left.width + right.width, max(left.height, right.height)
    both = Image.new("RGB", size, left.getpixel((0, 0)))
    for picture, x in ((left, 0), (right, left.width)):
        both.paste(picture, (x, (size[1] - picture.height) // 2))
    return both


def save(picture: Image.Image, name: str, verdict: str) -> None:
    """Write a picture in few colours, with the words of the verdict."""
    words = PngInfo()
    words.add_itxt("Verdict", verdict)
    small = picture.quantize(COLORS, dither=Image.Dither.NONE)
    small.save(FOLDER / f"{name}.png", optimize=True, pnginfo=words)


def renew(_app=None) -> None:
    """Take all pictures, unless the build is fast or there is no browser."""
    if FAST:
        return
    sys.path.append(str(ROOT / "tests"))
    from browsers import CHROMIUM, DRIVER, Browser

    if not (CHROMIUM and DRIVER):
        return
    with tempfile.TemporaryDirectory() as folder:
        page, verdict = write_report(progression(), Path(folder))
        browser = Browser()
        try:
            browser.open(page)
            browser.resize(WIDTH, 1400)
            for scheme in ("light", "dark"):
                browser.prefer(scheme)
                browser.settle()
                taken = {name: photograph(browser, name) for name in PICTURES}
                both = beside(taken["verdict"], taken["reliability"])
                size = FRONT, round(both.height * FRONT / both.width)
                taken["front"] = both.resize(size, Image.Resampling.LANCZOS)
                for name, picture in taken.items():
                    save(picture, f"{name}-{scheme}", verdict)
        finally:
            browser.driver.quit()


def setup(app) -> dict[str, bool]:
    """Run at the beginning of a build."""
    app.connect("builder-inited", renew)
    return {"parallel_read_safe": True}

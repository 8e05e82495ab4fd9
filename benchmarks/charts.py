"""All charts of the built chapters side by side, to be looked at, in build/charts-light.png and -dark.png.

Below each stand its chapter and its cell's number.

    python benchmarks/charts.py        # build the chapters first: make notebooks
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import chromium  # noqa: E402

PAGE = """<!doctype html><style>
:root {{ color-scheme: light dark }} body {{ font: 13px sans-serif; columns: 5; margin: 8px }}
figure {{ break-inside: avoid; margin: 0 0 16px; padding: 6px; border: 1px solid #8888 }}
img {{ max-width: 100% }}
</style>{figures}"""


def charts(notebook: Path) -> Iterator[str]:
    """Every chart of a built notebook, as a figure of HTML."""
    for number, cell in enumerate(nbformat.read(notebook, as_version=4).cells):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            page = BeautifulSoup(data.get("text/html", ""), "html.parser")
            found = [str(chart) for chart in page.select('[role=img][aria-label^="Chart"]')]
            found += [f'<img src="data:image/png;base64,{data["image/png"]}">'] if "image/png" in data else []
            for one in found:
                yield f"<figure>{one}<figcaption>{notebook.stem[:2]}:{number:03}</figcaption></figure>"


def main() -> None:
    """Draw the sheet in both themes."""
    figures = [one for path in sorted((ROOT / "course").glob("[0-9]*.ipynb")) for one in charts(path)]
    page = PAGE.format(figures="".join(figures))
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright)
        for theme in ("light", "dark"):
            window = browser.new_page(viewport={"width": 1900, "height": 1000}, color_scheme=theme)
            window.set_content(page)
            window.screenshot(path=ROOT / "build" / f"charts-{theme}.png", full_page=True)
        browser.close()
    print(f"{len(figures)} charts: build/charts-light.png and build/charts-dark.png")


if __name__ == "__main__":
    main()

"""What axe-core finds in the course's own content.

JupyterLab's menus and editors and nbgrader's pages are not ours to mend. So axe looks at what we write:
rendered Markdown and the outputs of cells in JupyterLab, the cards on the feedback page. The report is
ours as a whole.
"""

from axe_playwright_python.sync_playwright import Axe
from lab_notebook import menu
from playwright.sync_api import Page, expect

PARTS = ("RenderedMarkdown", "OutputArea-output")
IN_LAB = [f".jp-NotebookPanel:not(.lm-mod-hidden) .jp-{part}" for part in PARTS]


def findings(page: Page, *selectors: str) -> list[str]:
    """What axe finds in these parts of a page (without any, in the whole page), a line for each element."""
    context = {"include": [[selector] for selector in selectors]} if selectors else None
    results = Axe().run(page, context)
    nodes = [(one["id"], node) for one in results.response["violations"] for node in one["nodes"]]
    return [f"{name}: {node['html'][:200]} {node['failureSummary']}" for name, node in nodes]


def findings_in_both_themes(page: Page) -> list[str]:
    """What axe finds in the open notebook, with JupyterLab's light theme and with its dark one."""
    found = findings(page, *IN_LAB)
    choose_theme(page, "JupyterLab Dark")
    found += [f"(dark) {finding}" for finding in findings(page, *IN_LAB)]
    choose_theme(page, "JupyterLab Light")
    return found


def choose_theme(page: Page, name: str) -> None:
    """Choose a theme in the menu."""
    menu(page, "Settings", "Theme", name)
    expect(page.locator("body")).to_have_attribute("data-jp-theme-name", name)

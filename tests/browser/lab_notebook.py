"""The open notebook in JupyterLab, as a reader uses it: with mouse and keyboard."""

import re

from chromium import findings
from playwright.sync_api import Locator, Page, expect

# JupyterLab's menus and editors are not ours to mend. So axe looks at what we write.
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
OURS = {"include": [[f"{PANEL} .jp-{part}"] for part in ("RenderedMarkdown", "OutputArea-output")]}
# Nobody presses Tab more often than this to reach what is in the cell that they are in.
MOST_TABS = 10

# JupyterLab's status bar may still speak of the notebook that was in front before, and a cell that is run
# before its own kernel is connected is not run at all.
KERNEL_IS_CONNECTED = """async () => {
    const path = decodeURIComponent(location.pathname.split("/lab/tree/")[1]);
    const sessions = await (await fetch("/api/sessions")).json();
    const kernels = sessions.filter(session => session.path === path).map(session => session.kernel);
    return kernels.some(kernel => kernel.connections > 0 && kernel.execution_state === "idle");
}"""


def menu(page: Page, *path: str) -> None:
    first, *rest = path
    page.get_by_role("menuitem", name=first, exact=True).click()
    for name in rest:
        page.locator(".lm-Menu-itemLabel").get_by_text(name, exact=True).click()


def findings_in_both_themes(page: Page) -> list[str]:
    """What axe finds in the open notebook, with JupyterLab's dark theme and with its light one."""
    found = []
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        menu(page, "Settings", "Theme", name)
        expect(page.locator("body")).to_have_attribute("data-jp-theme-name", name)
        found += [f"({name}) {finding}" for finding in findings(page, OURS)]
    return found


class Notebook:
    """The notebook in the tab that is in front."""

    def __init__(self, page: Page, title: str) -> None:
        """Wait until the notebook with this heading is there and its kernel is ready."""
        self.page = page
        self.panel = page.locator(".jp-NotebookPanel:visible")
        expect(self.panel.get_by_role("heading", name=title)).to_be_visible()
        page.wait_for_function(KERNEL_IS_CONNECTED, polling=200)
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """Wait until the kernel has started and has nothing to do."""
        expect(self.page.get_by_role("button", name=re.compile(r"Python 3 .*\| Idle"))).to_be_visible()

    def cell(self, source: str) -> Locator:
        """The first code cell with this text in its source."""
        code = self.page.locator(".jp-Cell-inputArea", has_text=source)
        return self.panel.locator(".jp-CodeCell").filter(has=code).first

    def card(self, source: str) -> Locator:
        """The card under the first test cell with this text in its source."""
        return self.cell(source).get_by_role("status")

    def run(self, source: str) -> None:
        self.cell(source).locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def replace_line(self, cell: str, line: str, text: str) -> None:
        """Click on a line of a cell, mark it, and type another text."""
        self.cell(cell).locator(".cm-line", has_text=line).click()
        self.page.keyboard.press("Home")
        self.page.keyboard.press("Shift+End")
        self.page.keyboard.type(text)

    def tab_to(self, target: Locator) -> None:
        """Press Tab until the focus is on an element; what JupyterLab puts before it may change."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if target.evaluate("element => element === document.activeElement"):
                return
        expect(target).to_be_focused()  # says where the focus should be

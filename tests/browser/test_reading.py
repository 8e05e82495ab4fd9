"""A student opens the course, reads a chapter, and can do without a mouse."""

import re

import pytest
from lab_notebook import Notebook, findings_in_both_themes
from playwright.sync_api import Page, expect
from repository import ROOT

pytestmark = pytest.mark.slow


def test_from_the_front_page_to_a_measurement_to_the_exercises(lab, course, page, screenshot, film) -> None:
    page.goto(lab)
    front = Notebook(page, "Fast PyTorch, measured")
    screenshot(page, "front-page")
    assert findings_in_both_themes(page) == []

    front.panel.get_by_role("link", name=re.compile("Creating tensors")).first.click()
    chapter = Notebook(page, "01 · Creating tensors")
    chapter.run("import warnings")
    result = chapter.cell("100,000 equal numbers").locator(".jp-OutputArea-output")
    table = result.get_by_role("table", name="100,000 equal numbers")
    summary, bars = result.locator("summary").first, result.get_by_text("bars to the right are faster")
    chart = result.get_by_role("img", name=re.compile("^Chart, "))  # JupyterLab keeps names of what ran here
    expect(summary).to_contain_text("Guess first")
    expect(bars).not_to_be_visible()
    chapter.cell("guess = ...").evaluate("cell => cell.previousElementSibling.scrollIntoView()")
    film(page, 3)
    summary.click()
    expect(bars).to_be_visible()
    summary.click()

    chapter.replace_line("guess = ...", "guess = ...", "guess = 7")
    film(page, 1.5)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    expect(result).to_contain_text("You said 7×, it was ")
    summary.click()
    expect(table.get_by_role("row", name=re.compile("torch.full .+× to .+×")).first).to_be_visible()
    summary.click()
    expect(chart).to_have_accessible_name(re.compile("you said 7× faster"))
    film(page, 2)
    chart.scroll_into_view_if_needed()
    film(page, 5)
    screenshot(page, "chapter")
    assert findings_in_both_themes(page) == []

    page.keyboard.press("Control+s")
    expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    assert "guess = 7" in (course / "course/01_tensor_creation.ipynb").read_text()
    script = "course/01_tensor_creation.py"  # which is for authors
    assert (course / script).read_bytes() == (ROOT / script).read_bytes()

    chapter.panel.get_by_role("link", name="the exercises of this chapter").click()
    Notebook(page, "Exercises 01 · Creating tensors")


def test_the_keyboard_is_enough(lab: str, page: Page) -> None:
    page.goto(lab.replace("course/index.ipynb", "exercises/01_tensor_creation/01_tensor_creation.ipynb"))
    notebook = Notebook(page, "Exercises 01 · Creating tensors")
    active = notebook.panel.locator(".jp-Notebook-cell.jp-mod-active")
    press = page.keyboard.press

    press("ArrowDown")
    expect(active).to_contain_text("Exercises 01 · Creating tensors")
    press("ArrowDown")
    expect(active).to_contain_text("from autograder import check, costs, race")
    for _ in range(3):
        press("Shift+Enter")
    expect(active).to_contain_text("Hint 1")
    hint = active.locator("details").first
    notebook.tab_to(hint.locator("summary"))
    expect(hint).not_to_have_attribute("open", "")
    press("Space")
    expect(hint).to_have_attribute("open", "")

    press("ArrowDown")
    expect(active).to_contain_text("def one_hot(")
    press("Shift+Enter")
    press("Shift+Enter")
    expect(notebook.card("check(one_hot,")).to_contain_text("not attempted")
    for key in ("ArrowUp", "ArrowUp", "Enter", "Control+End", "Home", "Shift+End"):
        press(key)
    page.keyboard.type("return torch.eye(classes, device=labels.device)[labels]")
    press("Shift+Enter")
    press("Shift+Enter")
    expect(notebook.card("check(one_hot,")).to_contain_text("passed")

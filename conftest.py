"""Notebooks that nbval runs count as slow tests, so that one command runs everything that takes long."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("slow")

"""A short run of each property that ``make fuzz`` tries for longer, and of all that it found."""

import sys

import pytest
from fuzzing import FOUND, PROPERTIES
from hypothesis import HealthCheck, example, given, settings

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs Linux")


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_holds(name: str) -> None:
    checked = given(PROPERTIES[name].given)(PROPERTIES[name].holds)
    for found in FOUND[name]:
        checked = example(found)(checked)
    settings(
        max_examples=25,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )(checked)()

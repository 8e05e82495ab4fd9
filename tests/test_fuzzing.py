"""A short run of each property that ``make fuzz`` tries for longer, and of all that it found."""

import pytest
from fuzzing import FOUND, PROPERTIES
from hypothesis import HealthCheck, example, given, settings


@pytest.mark.parametrize("name", PROPERTIES)
def test_it_holds(name: str) -> None:
    holds, made = PROPERTIES[name]
    checked = given(made)(holds)
    for found in FOUND.get(name, ()):
        checked = example(found)(checked)
    always_the_same = {"derandomize": True, "database": None, "deadline": None}
    settings(max_examples=25, **always_the_same, suppress_health_check=list(HealthCheck))(checked)()

"""The fixture ``race`` for anybody's tests: ``race(new, against=old, on=inputs, at_least=1.5)``."""

from collections.abc import Callable
from typing import Any

import pytest

from .api import judge
from .verdict import Verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--race-undecided`` and the ini option ``race_trusted``."""
    what = "what a test is whose race noise left undecided (default: fail)"
    parser.getgroup("race").addoption("--race-undecided", choices=("fail", "skip"), default="fail", help=what)
    parser.addini("race_trusted", "race without a sandbox, for code of your own", type="bool", default=False)


@pytest.fixture(scope="session")
def race(pytestconfig: pytest.Config) -> Callable[..., Verdict]:
    """Fails the test unless a function is right and ``at_least`` times as fast as the one it is ``against``.

    ``on`` makes the inputs. Further options are those of ``autograder.judge.judge``. Gives the Verdict.
    """

    def race(answer: Any, *, against: Any, on: Any, at_least: float, **options: Any) -> Verdict:
        __tracebackhide__ = True
        options.setdefault("trusted", pytestconfig.getini("race_trusted"))
        verdict = judge(answer, against, on, at_least=at_least, **options)
        if verdict.word == "undecided" and pytestconfig.getoption("--race-undecided") == "skip":
            pytest.skip(str(verdict))
        if not verdict.fast_enough:
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    return race

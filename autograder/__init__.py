"""Fast PyTorch, measured: what a notebook imports.

``compare`` times callables and shows the result, ``costs`` counts what a call asks of torch, ``check`` and
``race`` test an answer for being right and for being fast, ``devices`` names the devices to run on.
"""

from importlib import import_module

# Loaded when first used: nbgrader's commands import this package too, and need no torch.
_HOMES = {
    "article_code": "teaching.verdicts",
    "behaviour": "teaching.verdicts",
    "check": "judging.check",
    "compare": "teaching.compare",
    "costs": "measuring.costs",
    "course_map": "teaching.course_map",
    "devices": "measuring.clocks",
    "documented": "teaching.verdicts",
    "fewer": "teaching.verdicts",
    "guessed": "teaching.guess",
    "picture": "show",
    "published": "teaching.published_picture",
    "published_figures": "teaching.published",
    "race": "judging.race",
    "recall": "teaching.recall",
    "scoreboard": "teaching.scoreboard",
    "ten_things": "teaching.scoreboard",
    "verdicts": "teaching.verdicts",
    "without": "measuring.causes",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]

"""The data in the repository: small, readable by torchvision, and with a known origin."""

from __future__ import annotations

import fnmatch
import re

import numpy as np
import pytest


@pytest.fixture(scope="module")
def files(root):
    """All data files that are not recorded timings."""
    found = [
        path for path in (root / "data").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    return [path for path in found if "timings" not in path.parts]


def test_data_is_small(files):
    assert sum(path.stat().st_size for path in files) < 3_000_000


def test_the_origin_of_every_file_is_stated(root, files):
    table = (root / "data/LICENSES.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| `([^`]+)` \| .+ \| .+ \|", table, re.MULTILINE)
    for path in files:
        name = path.relative_to(root / "data").as_posix()
        if path.suffix in {".jpg", ".png", ".npz"} or name.startswith("texts/"):
            assert any(fnmatch.fnmatch(name, pattern) for pattern in stated), name
    for pattern in stated:
        assert list((root / "data").glob(pattern)), f"{pattern} is not there"


def test_torchvision_reads_the_pictures(root):
    from torchvision.datasets import ImageFolder

    pictures = ImageFolder(root / "data/images")
    assert pictures.classes == ["cat", "cup", "space", "texture"]
    assert len(pictures) == 10
    for picture, _ in pictures:
        assert picture.mode == "RGB" and min(picture.size) > 100


def test_torchvision_reads_the_texts(root):
    from torchvision.datasets import DatasetFolder

    texts = DatasetFolder(
        root / "data/texts",
        loader=lambda path: open(path, encoding="utf-8").read(),  # noqa: SIM115
        extensions=(".txt",),
    )
    assert texts.classes == ["letter", "recipe", "weather"]
    assert len({text for text, _ in texts}) == 9


def test_digits(root):
    with np.load(root / "data/digits.npz") as digits:
        assert digits["images"].shape == (1797, 8, 8) and digits["images"].dtype == np.uint8
        assert digits["images"].max() == 16
        assert digits["labels"].shape == (1797,) and set(digits["labels"].tolist()) == set(range(10))

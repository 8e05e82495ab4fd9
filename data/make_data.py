"""Write the pictures and digits in this folder again: `python data/make_data.py`.

For the maintainer, in an environment with scikit-image, scikit-learn and Pillow. Everything comes out of
those packages' own files: nothing is downloaded. LICENSES.md says where each file comes from.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data
from sklearn.datasets import load_digits

HERE = Path(__file__).resolve().parent

# target → (picture in scikit-image, part to keep as left, upper, right, lower or None, longest side)
PICTURES = {
    "cat/chelsea.jpg": ("chelsea", None, 451),
    "cat/chelsea_face.jpg": ("chelsea", (120, 20, 380, 280), 260),
    "cup/coffee.jpg": ("coffee", None, 600),
    "cup/coffee_cup.jpg": ("coffee", (140, 20, 500, 340), 360),
    "space/astronaut.jpg": ("astronaut", None, 512),
    "space/hubble.jpg": ("hubble_deep_field", None, 500),
    "space/rocket.jpg": ("rocket", None, 640),
    "texture/brick.png": ("brick", None, 256),
    "texture/grass.png": ("grass", None, 256),
    "texture/gravel.png": ("gravel", None, 256),
}


def write_picture(target: Path, name: str, part: tuple[int, int, int, int] | None, longest: int) -> None:
    """Write one of scikit-image's pictures, cropped to `part` and scaled down to `longest` pixels."""
    picture = Image.fromarray(getattr(data, name)())
    if part:
        picture = picture.crop(part)
    if max(picture.size) > longest:
        picture.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    target.parent.mkdir(parents=True, exist_ok=True)
    picture.save(target, quality=90, optimize=True)


def write_digits(target: Path) -> None:
    """Write the 1,797 digits: `images` (1797, 8, 8) with values 0 to 16, `labels` (1797,), all uint8."""
    digits = load_digits()
    np.savez_compressed(target, images=digits.images.astype(np.uint8), labels=digits.target.astype(np.uint8))


if __name__ == "__main__":
    for file, (name, part, longest) in PICTURES.items():
        write_picture(HERE / "images" / file, name, part, longest)
    write_digits(HERE / "digits.npz")
    for path in [*sorted((HERE / "images").rglob("*.*g")), HERE / "digits.npz"]:
        print(f"{path.relative_to(HERE).as_posix():<28} {path.stat().st_size / 1000:6.1f} kB")

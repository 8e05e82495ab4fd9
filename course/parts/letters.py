"""A language model of letters, as chapter 20 has it, and the texts that it learns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .serving import teach

FOLDER = Path(__file__).resolve().parents[2] / "data" / "texts"
TEXT = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*/*.txt")))
ALPHABET = sorted(set(TEXT))
NUMBERS = torch.tensor([ALPHABET.index(letter) for letter in TEXT])
LONGEST = 256

# What attention sees of keys and of values, each of shape (texts, heads, positions, width of a head).
Stored = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class Layer(nn.Module):
    """One layer of a transformer: attention, then two products with a GELU between them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, stored: Stored | None) -> Tensor:
        three = self.inward(self.before(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = three.permute(2, 0, 3, 1, 4)
        if stored:
            key, value = stored(key, value)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.outward(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.between(x))))


class Writer(nn.Module):
    """Scores of the next letter after each letter: (texts, length) becomes (texts, length, letters).

    ``stored`` gives what attention sees in the place of keys and values.
    """

    def __init__(self, width: int, layers: int, letters: int = len(ALPHABET)) -> None:
        super().__init__()
        angles = torch.outer(torch.arange(LONGEST), 1e4 ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], 2).flatten(1))
        self.letters = nn.Embedding(letters, width)
        nn.init.normal_(self.letters.weight, std=width**-0.5)
        self.layers = nn.ModuleList(Layer(width, heads=width // 32) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, letters: Tensor, stored: Stored | None = None) -> Tensor:
        x = self.letters(letters) * self.last.weight.numel() ** 0.5 + self.places[: letters.shape[1]]
        for layer in self.layers:
            x = layer(x, stored)
        return self.last(x) @ self.letters.weight.T


def taught(width: int, layers: int, steps: int) -> Writer:
    """A model that has read two pieces of the texts in each step."""
    model = Writer(width, layers)
    teach(model, model, NUMBERS, steps)
    return model.eval().requires_grad_(False)


def loss(model: Writer, stored: Stored | None = None, length: int = 112) -> float:
    """The mean loss for a letter of the texts, in nats: minus the logarithm of its likelihood."""
    pieces = NUMBERS[torch.arange(0, len(NUMBERS) - length, 24)[:, None] + torch.arange(length + 1)]
    scores = model(pieces[:, :-1], stored)
    return F.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten()).item()

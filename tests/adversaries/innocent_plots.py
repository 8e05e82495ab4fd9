"""Innocent: plots with matplotlib and pictures, before and between the answers.

# points:
# suspicious: no
"""

# %% extra first
import matplotlib.pyplot as plt
import numpy as np

plt.plot(np.arange(10) ** 2)
plt.title("squares")
plt.show()


# %% shift answer
def shift(x, steps):
    return torch.roll(x, steps, dims=1)


# %% extra after_shift
from PIL import Image

figure, axis = plt.subplots()
axis.imshow(shift(torch.eye(9), 2))
display(figure)
Image.fromarray(np.zeros((8, 8, 3), np.uint8))

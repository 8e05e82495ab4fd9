"""Innocent: an answer that loads what it needs when it is called, beside memory that other cells keep.

# points:
# suspicious: no
"""

# %% extra before_farthest
million = torch.randn(5_000_000)
many = [torch.randn(1000) for _ in range(5000)]
median = million.median()


# %% farthest answer
def farthest(x):
    def of_one(number):
        return (number - x).abs().amax()

    return torch.vmap(of_one, chunk_size=30)(x)

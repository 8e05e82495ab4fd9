"""Takes all threads that torch can get, and every core, for an answer as slow as given.

# points: total_race=0
"""

# %% total answer
import os
from concurrent.futures import ThreadPoolExecutor


def part(rows):
    return [row.sum() for row in rows]


def total(x):
    os.sched_setaffinity(0, range(os.cpu_count()))
    with ThreadPoolExecutor(2) as pool:
        half = len(x) // 2
        rows = [row for rows in pool.map(part, (x[:half], x[half:])) for row in rows]
    return torch.stack(rows) if rows else x.sum(dim=1)

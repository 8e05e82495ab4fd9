# %% unit_rows 410489ad49
import torch


def unit_rows(x):
    length = x.norm(dim=1, keepdim=True)
    return x / torch.where(length > 0, length, 1)


# %% pair_cosines 97c1172809
import torch
import torch.nn.functional as F


def pair_cosines(x, pairs):
    if pairs.numel() and (pairs.min() < 0 or pairs.max() >= len(x)):
        raise IndexError(f"row numbers must be from 0 to {len(x) - 1}")
    units = F.normalize(x)
    table = units @ units.T
    return table[pairs[0], pairs[1]]


# %% gappy_distances e2b0256aad
import torch


def gappy_distances(a, b):
    dtype = a.dtype
    middle = b.nanmean(0).nan_to_num().double()
    known_a, known_b = (~a.isnan()).double(), (~b.isnan()).double()
    a = (a.double() - middle).nan_to_num()
    b = (b.double() - middle).nan_to_num()
    left = torch.cat([a * a, known_a, -2 * a], 1)
    right = torch.cat([known_b, b * b, b], 1)
    squares = (left @ right.T).clamp_min(0)
    return (squares / (known_a @ known_b.T)).sqrt().to(dtype)


# %% neighbours f686d45b07
import torch


def neighbours(queries, points, k):
    if not 1 <= k <= len(points):
        raise ValueError(f"k must be from 1 to {len(points)}, not {k}")
    if queries.shape[1] != points.shape[1]:
        raise ValueError(f"queries have {queries.shape[1]} columns, points have {points.shape[1]}")
    some_queries, some_points = 32, 800
    middle = points.mean(0).double()
    distances = queries.new_empty(len(queries), k)
    places = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
    for first in range(0, len(queries), some_queries):
        few = queries[first : first + some_queries].double() - middle
        best = None
        for start in range(0, len(points), some_points):
            part = points[start : start + some_points].double() - middle
            values, indices = torch.cdist(few, part).topk(min(k, len(part)), largest=False)
            indices += start
            if best is not None:
                values = torch.cat([best[0], values], 1)
                indices = torch.cat([best[1], indices], 1)
                values, order = values.topk(min(k, values.shape[1]), largest=False)
                indices = indices.gather(1, order)
            best = values, indices
        distances[first : first + some_queries] = best[0]
        places[first : first + some_queries] = best[1]
    return distances, places


# %% kmeans c15319de66
import torch


def kmeans(points, centres, steps):
    dtype = points.dtype
    middle = points.mean(0).double()
    points, centres = points.double() - middle, centres.double() - middle
    numbers = torch.arange(len(centres), device=points.device)
    for _ in range(steps):
        labels = torch.cdist(points, centres).argmin(1)
        members = (labels == numbers[:, None]).double()
        counts = members.sum(1, keepdim=True)
        centres = torch.where(counts > 0, members @ points / counts.clamp_min(1), centres)
    labels = torch.cdist(points, centres).argmin(1)
    distance = (points - centres[labels]).norm(dim=1).mean()
    return (centres + middle).to(dtype), labels, distance.to(dtype)

# %% unit_rows right_slow check=1 gradients=1 hidden=2 race=0
def unit_rows(x):
    rows = []
    for row in x:
        length = row.norm()
        rows.append(row / length if length > 0 else row)
    return torch.stack(rows) if rows else torch.empty_like(x)


# %% unit_rows wrong_fast check=0 gradients=0 hidden=0 race=0
def unit_rows(x):
    return x / x.norm(dim=1, keepdim=True)


# %% unit_rows with_the_default_eps check=1 gradients=0 hidden=0 race=0
def unit_rows(x):
    return F.normalize(x)


# %% unit_rows zeros_put_in_afterwards check=1 gradients=0 hidden=2 race=0
def unit_rows(x):
    length = x.norm(dim=1, keepdim=True)
    return torch.where(length > 0, x / length, 0)


# %% cosine_matrix right_slow check=1 hidden=2 race=0
def cosine_matrix(a, b):
    rows = [F.cosine_similarity(row[None], b) for row in a]
    return torch.stack(rows) if rows else a.new_empty(0, len(b))


# %% cosine_matrix wrong_fast check=0 hidden=0 race=0
def cosine_matrix(a, b):
    return (a / a.norm(dim=1, keepdim=True)) @ (b / b.norm(dim=1, keepdim=True)).T


# %% pairwise right_slow check=1 offset=2 columns=1 hidden=2 race=0
def pairwise(a, b):
    if a.shape[1] != b.shape[1]:
        raise ValueError("different columns")
    rows = [(b - row).square().sum(1).sqrt() for row in a]
    return torch.stack(rows) if rows else a.new_empty(0, len(b))


# %% pairwise wrong_fast check=1 offset=0 columns=1 hidden=0 race=0
def pairwise(a, b):
    return torch.cdist(a, b)


# %% pairwise negative_squares check=1 offset=2 columns=0 hidden=0 race=0
def pairwise(a, b):
    middle = b.mean(0)
    a, b = a - middle, b - middle
    return (a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T).sqrt()


# %% pairwise hides_different_columns check=1 offset=2 columns=0 hidden=2 race=0
def pairwise(a, b):
    middle = b.mean(0)
    return torch.cdist(a - middle, b - middle)


# %% pairwise in_float64 check=1 offset=2 columns=1 hidden=2 race=2
def pairwise(a, b):
    return torch.cdist(a.double(), b.double()).float()


# %% strangeness right_slow check=1 memory=1 hidden=2 race=0
def strangeness(queries, points, k):
    scores = []
    for query in queries:
        distances = (points - query).square().sum(1).sqrt()
        scores.append(distances.topk(k, largest=False).values.mean())
    return torch.stack(scores) if scores else queries.new_empty(0)


# %% strangeness wrong_fast check=0 memory=0 hidden=0 race=0
def strangeness(queries, points, k):
    return torch.cdist(queries, points).kthvalue(k, dim=1).values


# %% strangeness all_at_once check=1 memory=0 hidden=0 race=2
def strangeness(queries, points, k):
    return torch.cdist(queries, points).topk(k, largest=False).values.mean(1)


# %% strangeness forgets_the_indices check=1 memory=1 hidden=0 race=2
def strangeness(queries, points, k):
    parts = [torch.cdist(some, points).topk(k, largest=False).values.mean(1) for some in queries.split(64)]
    return torch.cat(parts) if parts else queries.new_empty(0)


# %% kmeans_step right_slow check=1 empty=1 hidden=2 race=0
def kmeans_step(points, centres):
    sums, counts = torch.zeros_like(centres), [0] * len(centres)
    for point in points:
        nearest = int((centres - point).square().sum(1).argmin())
        sums[nearest] += point
        counts[nearest] += 1
    rows = [sums[i] / counts[i] if counts[i] else centres[i] for i in range(len(centres))]
    return torch.stack(rows)


# %% kmeans_step wrong_fast check=1 empty=0 hidden=0 race=0
def kmeans_step(points, centres):
    members = F.one_hot(torch.cdist(points, centres).argmin(1), len(centres)).float()
    return members.T @ points / members.sum(0)[:, None]


# %% kmeans_step with_index_add check=1 empty=1 hidden=2 race=2
def kmeans_step(points, centres):
    nearest = torch.cdist(points, centres).argmin(1)
    sums = torch.zeros_like(centres).index_add_(0, nearest, points)
    counts = torch.bincount(nearest, minlength=len(centres))[:, None]
    return torch.where(counts > 0, sums / counts.clamp(min=1), centres)

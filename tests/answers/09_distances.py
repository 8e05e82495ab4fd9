# %% unit_rows right_slow check=1 gradients=1 hidden=2 race=0
def unit_rows(x):
    rows = []
    for row in x:
        length = row.norm()
        rows.append(row / length if length > 0 else row)
    return torch.stack(rows) if rows else torch.empty_like(x)


# %% unit_rows transcribed check=1 gradients=1 hidden=2 race=1
def unit_rows(x):
    length = x.norm(dim=1, keepdim=True)
    divisor = torch.where(length > 0, length, 1)
    return x / divisor


# %% unit_rows wrong_fast check=0 gradients=0 hidden=0 race=0
def unit_rows(x):
    return x / x.norm(dim=1, keepdim=True)


# %% unit_rows with_the_default_eps check=0 gradients=0 hidden=0 race=0
def unit_rows(x):
    return F.normalize(x)


# %% unit_rows zeros_put_in_afterwards check=1 gradients=0 hidden=2 race=0
def unit_rows(x):
    length = x.norm(dim=1, keepdim=True)
    return torch.where(length > 0, x / length, 0)


# %% pair_cosines right_slow check=1 range=1 hidden=1 race=0
def pair_cosines(x, pairs):
    return pair_cosines_slow(x, pairs)


# %% pair_cosines transcribed check=1 range=1 hidden=1 race=0..1.6
def pair_cosines(x, pairs):
    if pairs.numel() and (pairs.min() < 0 or pairs.max() >= len(x)):
        raise IndexError("no such row")
    units = F.normalize(x)
    return (units[pairs[0]] * units[pairs[1]]).sum(1)


# %% pair_cosines wrong_fast check=0 range=1 hidden=0 race=0
def pair_cosines(x, pairs):
    if pairs.numel() and (pairs.min() < 0 or pairs.max() >= len(x)):
        raise IndexError("no such row")
    units = x / x.norm(dim=1, keepdim=True)
    return (units @ units.T)[pairs[0], pairs[1]]


# %% pair_cosines right_but_lenient check=1 range=0 hidden=1 race=0
def pair_cosines(x, pairs):
    units = F.normalize(x)
    return (units @ units.T)[pairs[0], pairs[1]]


# %% pair_cosines right_but_needs_a_pair check=0 range=1 hidden=0 race=0
def pair_cosines(x, pairs):
    if pairs.min() < 0 or pairs.max() >= len(x):
        raise IndexError("no such row")
    units = F.normalize(x)
    return (units @ units.T)[pairs[0], pairs[1]]


# %% pair_cosines right_by_flat_numbers check=1 range=1 hidden=1 race=3
def pair_cosines(x, pairs):
    if pairs.numel() and not 0 <= int(pairs.min()) <= int(pairs.max()) < len(x):
        raise IndexError("no such row")
    products = x @ x.T
    lengths = products.diagonal().sqrt()
    cosines = products / (lengths[:, None] * lengths).clamp_min(1e-30)
    return cosines.flatten()[pairs[0] * len(x) + pairs[1]]


# %% gappy_distances right_slow check=1 far=1 hidden=2 race=0
def gappy_distances(a, b):
    return gappy_distances_slow(a, b)


# %% gappy_distances transcribed check=0 far=0 hidden=0 race=0
def gappy_distances(a, b):
    middle = b.nanmean(0).nan_to_num()
    a, b = a - middle, b - middle
    common = (~a.isnan()).to(a.dtype) @ (~b.isnan()).to(b.dtype).T
    return torch.cdist(a.nan_to_num(), b.nan_to_num()) / common.sqrt()


# %% gappy_distances right_at_once check=1 far=1 hidden=2 race=0..2.2
def gappy_distances(a, b):
    return (a[:, None] - b).square().nanmean(2).sqrt()


# %% gappy_distances wrong_fast check=1 far=0 hidden=0 race=0
def gappy_distances(a, b):
    in_a, in_b = (~a.isnan()).to(a.dtype), (~b.isnan()).to(b.dtype)
    a, b = a.nan_to_num(), b.nan_to_num()
    squares = a.square() @ in_b.T + in_a @ b.square().T - 2 * (a @ b.T)
    return (squares.clamp_min(0) / (in_a @ in_b.T)).sqrt()


# %% gappy_distances wrong_below_zero check=1 far=0 hidden=0 race=0
def gappy_distances(a, b):
    middle = b.nanmean(0).nan_to_num()
    a, b = a - middle, b - middle
    in_a, in_b = (~a.isnan()).to(a.dtype), (~b.isnan()).to(b.dtype)
    a, b = a.nan_to_num(), b.nan_to_num()
    squares = a.square() @ in_b.T + in_a @ b.square().T - 2 * (a @ b.T)
    return (squares / (in_a @ in_b.T)).sqrt()


# %% gappy_distances right_by_four_products check=1 far=1 hidden=2 race=3
def gappy_distances(a, b):
    middle = torch.nanmean(b, 0)
    middle = torch.where(middle.isnan(), 0, middle)
    known_a, known_b = ~a.isnan(), ~b.isnan()
    a, b = torch.where(known_a, a - middle, 0), torch.where(known_b, b - middle, 0)
    known_a, known_b = known_a.to(a.dtype), known_b.to(b.dtype)
    squares = a.square() @ known_b.T + known_a @ b.square().T - 2 * a @ b.T
    return (squares.clamp(min=0) / (known_a @ known_b.T)).sqrt()


# %% neighbours right_slow check=1 bad=1 memory=0..3 hidden=2 race=0
def neighbours(queries, points, k):
    return neighbours_slow(queries, points, k)


# %% neighbours right_but_large check=1 bad=1 memory=0 hidden=2 race=2
def neighbours(queries, points, k):
    return neighbours_large(queries, points, k)


# %% neighbours transcribed check=1 bad=1 memory=0 hidden=2 race=2
def neighbours(queries, points, k):
    refuse(queries, points, k)
    middle = points.mean(0)
    points = points - middle
    found = [torch.cdist(some, points).topk(k, largest=False) for some in (queries - middle).split(64)]
    return torch.cat([one.values for one in found]), torch.cat([one.indices for one in found])


# %% neighbours right_in_pieces_of_queries check=1 bad=1 memory=0..2 hidden=2 race=1..2
def neighbours(queries, points, k):
    refuse(queries, points, k)
    middle = points.mean(0)
    points = points - middle
    size = max(1, 100_000 // len(points))
    found = [torch.cdist(some, points).topk(k, largest=False) for some in (queries - middle).split(size)]
    return torch.cat([one.values for one in found]), torch.cat([one.indices for one in found])


# %% neighbours wrong_fast check=0 bad=1 memory=0 hidden=0 race=0
def neighbours(queries, points, k):
    refuse(queries, points, k)
    found = torch.cdist(queries, points).topk(k, largest=False)
    return found.values, found.indices


# %% neighbours wrong_places check=0 bad=1 memory=0 hidden=0 race=0
def neighbours(queries, points, k):
    refuse(queries, points, k)
    middle = points.mean(0)
    queries = queries - middle
    best, where = queries.new_empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.int64)
    where = where.to(queries.device)
    for some in points.split(1024):
        found = torch.cdist(queries, some - middle).topk(min(k, len(some)), largest=False)
        best, order = torch.cat([best, found.values], 1).topk(k, largest=False)
        where = torch.cat([where, found.indices], 1).gather(1, order)
    return best, where


# %% neighbours right_small_and_slow check=1 bad=1 memory=1..3.6 hidden=2 race=0..1.2
def neighbours(queries, points, k):
    refuse(queries, points, k)
    distances = queries.new_empty(len(queries), k)
    places = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
    for i in range(len(queries)):
        one = torch.cdist(queries[i : i + 1], points, compute_mode="donot_use_mm_for_euclid_dist")[0]
        distances[i], places[i] = one.topk(k, largest=False)
    return distances, places


# %% neighbours right_without_roots check=1 bad=1 memory=4 hidden=2 race=2
def neighbours(queries, points, k):
    refuse(queries, points, k)
    middle = points.mean(0)
    results = [(queries.new_empty(0, k), torch.empty(0, k, dtype=torch.int64, device=queries.device))]
    for some in queries.split(50):
        some = some - middle
        values = places = None
        for start in range(0, len(points), 1000):
            part = points[start : start + 1000] - middle
            squares = torch.addmm(part.square().sum(1), some, part.T, alpha=-2)
            new, at = squares.topk(min(k, len(part)), largest=False)
            del squares
            at += start
            if values is not None:
                new, at = torch.cat([values, new], 1), torch.cat([places, at], 1)
                new, order = new.topk(min(k, new.shape[1]), largest=False)
                at = at.gather(1, order)
            values, places = new, at
        own = some.square().sum(1, keepdim=True)
        results.append(((values + own).clamp_min(0).sqrt(), places))
    return torch.cat([d for d, _ in results]), torch.cat([p for _, p in results])


# %% kmeans right_slow check=1 others=2 hidden=2 race=0
def kmeans(points, centres, steps):
    return kmeans_slow(points, centres, steps)


# %% kmeans wrong_fast check=1 others=0 hidden=0 race=0
def kmeans(points, centres, steps):
    return kmeans_hasty(points, centres, steps)


# %% kmeans transcribed check=1 others=0 hidden=0 race=0
def kmeans(points, centres, steps):
    middle = points.mean(0)
    points, centres = points - middle, centres - middle
    for _ in range(steps):
        labels = torch.cdist(points, centres).argmin(1)
        members = F.one_hot(labels, len(centres)).float()
        centres = members.T @ points / members.sum(0)[:, None].clamp_min(1)
    return centres + middle, labels, torch.cdist(points, centres).amin(1).mean()


# %% kmeans right_cluster_by_cluster check=1 others=2 hidden=2 race=0..2.9
def kmeans(points, centres, steps):
    middle = points.mean(0)
    points, centres = points - middle, centres - middle
    for _ in range(steps):
        labels = torch.cdist(points, centres).argmin(1)
        moved = []
        for i in range(len(centres)):
            own = points[labels == i]
            moved.append(own.mean(0) if len(own) else centres[i])
        centres = torch.stack(moved)
    distances, labels = torch.cdist(points, centres).min(1)
    return centres + middle, labels, distances.mean()


# %% kmeans wrong_labels_of_the_last_step check=1 others=0 hidden=0 race=0
def kmeans(points, centres, steps):
    middle = points.mean(0)
    points, centres = points - middle, centres - middle
    labels = torch.cdist(points, centres).argmin(1)
    for _ in range(steps):
        labels = torch.cdist(points, centres).argmin(1)
        members = F.one_hot(labels, len(centres)).to(points.dtype)
        counts = members.sum(0)[:, None]
        centres = torch.where(counts > 0, members.T @ points / counts, centres)
    return centres + middle, labels, torch.cdist(points, centres).amin(1).mean()


# %% kmeans wrong_in_place check=0 others=0 hidden=0 race=0
def kmeans(points, centres, steps):
    middle = points.mean(0)
    points -= middle
    centres = centres - middle
    for _ in range(steps):
        members = F.one_hot(torch.cdist(points, centres).argmin(1), len(centres)).to(points.dtype)
        counts = members.sum(0)[:, None]
        centres = torch.where(counts > 0, members.T @ points / counts, centres)
    distances, labels = torch.cdist(points, centres).min(1)
    return centres + middle, labels, distances.mean()


# %% kmeans right_and_direct check=1 others=2 hidden=2 race=3
def kmeans(points, centres, steps):
    def nearest(centres):
        return torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist").min(1)

    for _ in range(steps):
        labels = nearest(centres).indices
        sums = torch.zeros_like(centres).index_add_(0, labels, points)
        counts = torch.bincount(labels, minlength=len(centres))[:, None]
        centres = torch.where(counts > 0, sums / counts, centres)
    distances, labels = nearest(centres)
    return centres.clone(), labels, distances.mean()


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "pixels": {"operations": 3, "bytes": 60, "syncs": 0},
        "halved": {"operations": 3, "bytes": 78, "syncs": 0},
        "distances": {"operations": 4, "bytes": 324, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "pixels": {"operations": 3, "bytes": 4 * n * d, "syncs": 0},
        "halved": {"operations": 3, "bytes": 4 * n * n, "syncs": 0},
        "distances": {"operations": 4, "bytes": 4 * n * n, "syncs": 0},
    }

# %% diagnosis nothing_wrong form=1 lines=6 causes=4.5 gains=1.5
def diagnosis():
    return dict.fromkeys(PIECES, ("", "nothing", 1))


# %% diagnosis one_cause form=1 lines=0 causes=1.5 gains=0.5
def diagnosis():
    return dict.fromkeys(PIECES, ("return", "unused", 20)) | {"suppressed": ("return", "unused", 6)}


# %% diagnosis loops form=1 lines=4 causes=1.5 gains=0
def diagnosis():
    return dict.fromkeys(PIECES, ("for", "small pieces", 20)) | {
        "shop_report": ("for shop in range(count):", "small pieces", 20),
        "suppressed": ("while len(order):", "small pieces", 20),
    }


# %% diagnosis guesses form=1 lines=4 causes=0 gains=0.5
def diagnosis():
    return {
        "served_batch": ("channels = balanced.mean(dim=(1, 2))", "repeated", 30),
        "averaged": ("average.add_(moved, alpha=rate)", "small pieces", 3),
        "near_duplicates": ("nearest = distances.topk(k, dim=1, largest=False).values", "unused", 30),
        "shop_report": ("for shop in range(count):", "small pieces", 30),
        "hard_negatives": ("scores = users @ items.T", "unused", 5),
        "scene_shares": ("logs = logits.log_softmax(dim=1)", "repeated", 30),
        "trending": ("history[number] = counts[watched]", "small pieces", 30),
        "look_alikes": ("cosines = features @ F.normalize(gallery, dim=1).T", "repeated", 30),
        "equalised": ("levels = pictures.flatten(1).long()", "float64", 2),
        "suppressed": ("order = order[shared / covered <= most]", "copied", 6),
    }


# %% diagnosis wrong_causes form=1 lines=20 causes=4.5 gains=1.5
def diagnosis():
    return {
        "served_batch": ("balanced = values.mul_(white).clamp_(max=1)", "small pieces", 50),
        "averaged": ("", "nothing", 1),
        "near_duplicates": ("both = new[:, None] + known", "unused", 50),
        "shop_report": ("own = off[shops == shop]", "small pieces", 50),
        "hard_negatives": ("", "nothing", 1),
        "scene_shares": ("logits = F.conv2d(large, head[:, :, None, None], offsets)", "unused", 50),
        "trending": ("counts = counts.index_add(0, items, weights)", "small pieces", 50),
        "look_alikes": ("network(batch.flatten(1))", "graph", 50),
        "equalised": ("", "nothing", 1),
        "suppressed": ("width = (inner_right - inner_left).clamp(min=0)", "unused", 50),
    }


# %% diagnosis half form=1 lines=10 causes=7.5 gains=2.5
def diagnosis():
    return dict.fromkeys(PIECES, ("x", "graph", 1000)) | {
        "averaged": ("", "nothing", 1),
        "shop_report": ("own = off[shops  == shop]", "groups", 5),
        "scene_shares": (
            'large = F.interpolate(features, size=size, mode="bilinear", align_corners=False)',
            "late",
            5,
        ),
        "trending": ("counts = counts.index_add(0, items, weights)", "copied", 4),
        "suppressed": ("covered = areas[best] + areas[order] - shared", "small pieces", 7),
    }


# %% diagnosis not_readable form=0 lines=0 causes=0 gains=0
def diagnosis():
    return {"trending": "counts[watched]", "averaged": None}


# %% served_batch_mended as_is check=0.0625 edges=0.0625 hidden=0
def served_batch_mended(*inputs):
    return served_batch(*inputs)


# %% served_batch_mended long_rows check=0.0625 edges=0.0625 hidden=0.875
def served_batch_mended(pictures, white, mean, std):
    width = pictures.shape[2]
    white, mean, std = (of_channel.repeat(width) for of_channel in (white, mean, std))
    balanced = pictures.flatten(2).float().div_(255).mul_(white).clamp_(max=1)
    channels = balanced.mean(dim=1).unflatten(1, (width, 3)).mean(dim=1)
    scaled = balanced.sub_(mean).div_(std).unflatten(2, (width, 3))
    batch = scaled.permute(0, 3, 1, 2).contiguous()
    return batch, channels.mean(dim=1), channels / channels.sum(dim=1, keepdim=True).clamp(min=1e-6)


# %% served_batch_mended without_the_copy check=0.0625 edges=0.0625 hidden=0
def served_batch_mended(pictures, white, mean, std):
    balanced = pictures.float().div_(255).mul_(white).clamp_(max=1)
    channels = balanced.mean(dim=(1, 2))
    batch = balanced.sub_(mean).div_(std).permute(0, 3, 1, 2)
    return batch, channels.mean(dim=1), channels / channels.sum(dim=1, keepdim=True).clamp(min=1e-6)


# %% served_batch_mended wrong_for_none check=0.0625 edges=0 hidden=0
def served_batch_mended(pictures, white, mean, std):
    batch, bright, parts = served_batch(pictures, white, mean, std)
    return batch, torch.stack(list(bright)), parts


# %% averaged_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def averaged_mended(*inputs):
    return averaged(*inputs)


# %% averaged_mended wrong_in_place check=0 edges=0 hidden=0
def averaged_mended(averages, snapshots, decay):
    found = averaged(averages, snapshots, decay)
    for average, new in zip(averages, found[0], strict=True):
        average.copy_(new)
    return averages, *found[1:]


# %% near_duplicates_mended as_is check=0.0625 edges=0.0625 hidden=0
def near_duplicates_mended(*inputs):
    return near_duplicates(*inputs)


# %% near_duplicates_mended wrong_for_none check=0.0625 edges=0 hidden=0
def near_duplicates_mended(uploads, store, k, limit):
    found = [near_duplicates(rows, store, k, limit) for rows in uploads[:, None]]
    return [torch.cat(parts) for parts in zip(*found, strict=True)]


# %% shop_report_mended as_is check=0.0625 edges=0.0625 hidden=0
def shop_report_mended(*inputs):
    return shop_report(*inputs)


# %% shop_report_mended wrong_for_none check=0.0625 edges=0 hidden=0
def shop_report_mended(users, items, pairs, ratings, shops, count):
    off = (users[pairs[:, 0]] * items[pairs[:, 1]]).sum(dim=1) - ratings
    number = shops.bincount(minlength=count)
    columns = [off, off.abs(), off.square()]
    bias, error, squared = (off.new_zeros(count).index_add(0, shops, x) / number for x in columns)
    table = torch.stack([number, bias, error, squared.sqrt()], dim=1)
    return table, table[:, 1:].abs().amax(dim=0)


# %% hard_negatives_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def hard_negatives_mended(*inputs):
    return hard_negatives(*inputs)


# %% hard_negatives_mended wrong_with_seen check=0 edges=0..0.0625 hidden=0
def hard_negatives_mended(users, items, clicked, seen, drawn, k):
    return hard_negatives(users, items, clicked, torch.zeros_like(seen), drawn, k)


# %% scene_shares_mended as_is check=0.0625 edges=0.0625 hidden=0
def scene_shares_mended(*inputs):
    return scene_shares(*inputs)


# %% scene_shares_mended wrong_small check=0 edges=0 hidden=0
def scene_shares_mended(features, head, offsets, size):
    return scene_shares(features, head, offsets, features.shape[2:])


# %% trending_mended as_is check=0.0625 edges=0.0625 hidden=0
def trending_mended(*inputs):
    return trending(*inputs)


# %% trending_mended wrong_in_place check=0 edges=0 hidden=0
def trending_mended(counts, batches, watched):
    before = counts[watched]
    history = counts.new_empty(len(batches), len(watched))
    for number, (items, weights) in enumerate(batches):
        counts.index_add_(0, items, weights)
        history[number] = counts[watched]
    rises = history.diff(dim=0, prepend=before[None])
    return counts, history, rises / rises.sum(dim=1, keepdim=True).clamp(min=1e-6)


# %% look_alikes_mended as_is check=0.0625 edges=0.0625 hidden=0
def look_alikes_mended(*inputs):
    return look_alikes(*inputs)


# %% look_alikes_mended wrong_layer check=0 edges=0 hidden=0
def look_alikes_mended(weights, gallery, pictures, place, k, batch_size=128):
    return look_alikes(weights[:1], gallery, pictures, 0, k)


# %% equalised_mended as_is check=0.0625 edges=0.0625 hidden=0.875
def equalised_mended(*inputs):
    return equalised(*inputs)


# %% equalised_mended wrong_for_none check=0.0625 edges=0 hidden=0.875
def equalised_mended(pictures, share):
    new, used, mean = zip(*(equalised(picture[None], share) for picture in pictures), strict=True)
    return torch.cat(new), torch.cat(used), torch.cat(mean)


# %% suppressed_mended as_is check=0.0625 edges=0.0625 hidden=0
def suppressed_mended(*inputs):
    return suppressed(*inputs)


# %% suppressed_mended wrong_one_round check=0 edges=0.0625 hidden=0
def suppressed_mended(boxes, scores, most):
    order = scores.argsort(descending=True)
    left, top, right, bottom = boxes[order].T.contiguous()
    areas = (right - left) * (bottom - top)
    width = torch.minimum(right[:, None], right) - torch.maximum(left[:, None], left)
    height = torch.minimum(bottom[:, None], bottom) - torch.maximum(top[:, None], top)
    shared = width.clamp_(min=0) * height.clamp_(min=0)
    hides = (shared / (areas[:, None] + areas - shared) > most).triu(1)
    kept = order[~hides.any(dim=0)]
    return kept, scores[kept], areas[~hides.any(dim=0)]

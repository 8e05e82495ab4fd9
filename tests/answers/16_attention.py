"""Known answers to chapter 16, each with what it must get in every test cell."""


# %% attend_masked right_slow check=1 lean=0 hidden=2
def attend_masked(query, key, value, padding, forbidden):
    scores = (query @ key.mT / query.shape[-1] ** 0.5).double()
    left_out = padding[:, None, None, :] | forbidden[None, None]
    scores = scores.masked_fill(left_out, -1e30)
    weights = scores.softmax(-1).masked_fill(left_out, 0).to(query.dtype)
    return weights @ value


# %% attend_masked transcribed check=0 lean=0 hidden=0
def attend_masked(query, key, value, padding, forbidden):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=padding[:, None, None] | forbidden)


# %% attend_masked masks_turned_only check=1 lean=0.3..1.2 hidden=2
def attend_masked(query, key, value, padding, forbidden):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=~(padding[:, None, None] | forbidden))


# %% attend_masked forgets_to_clean_up check=0 lean=0 hidden=0
def attend_masked(query, key, value, padding, forbidden):
    visible = ~(padding[:, None, None] | forbidden)
    visible = visible | ~visible.any(-1, keepdim=True)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible)


# %% attend_masked loses_the_kernel check=1 lean=0.3..1.5 hidden=2
def attend_masked(query, key, value, padding, forbidden):
    visible = ~(padding[:, None, None] | forbidden)
    alone = ~visible.any(-1, keepdim=True)
    result = F.scaled_dot_product_attention(query, key, value, attn_mask=visible | alone)
    return torch.where(alone, 0, result)


# %% attend_masked right_text_by_text check=1 lean=3 hidden=2
def attend_masked(query, key, value, padding, forbidden):
    results = []
    for one, its_keys, its_values, left_out in zip(query, key, value, padding, strict=True):
        visible = ~(left_out | forbidden)
        alone = ~visible.any(-1, keepdim=True)
        three = (tensor[None].contiguous() for tensor in (one, its_keys, its_values))
        result = F.scaled_dot_product_attention(*three, attn_mask=visible | alone)
        results.append(torch.where(alone, 0, result[0]))
    return torch.stack(results)


# %% local right_slow check=1 lean=0 hidden=2 race=0
def local(query, key, value, window):
    length = query.shape[2]
    ones = torch.ones(length, length, device=query.device)
    hidden = (ones.tril().triu(1 - window) == 0).to(query.dtype) * -1e30
    return (query @ key.mT / query.shape[-1] ** 0.5 + hidden).softmax(-1) @ value


# %% local transcribed check=0 lean=0 hidden=0 race=0
def local(query, key, value, window):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


# %% local one_too_many check=0 lean=0 hidden=0 race=0
def local(query, key, value, window):
    results = []
    for start in range(0, query.shape[2], 64):
        end, first = min(start + 64, query.shape[2]), max(0, start - window)
        place = torch.arange(first, end, device=query.device)
        back = place[start - first :, None] - place
        results.append(
            F.scaled_dot_product_attention(
                query[:, :, start:end],
                key[:, :, first:end],
                value[:, :, first:end],
                attn_mask=(back >= 0) & (back <= window),
            )
        )
    return torch.cat(results, 2)


# %% local right_query_by_query check=1 lean=2 hidden=2 race=0
def local(query, key, value, window):
    return torch.cat(
        [
            F.scaled_dot_product_attention(
                query[:, :, i : i + 1],
                key[:, :, max(0, i + 1 - window) : i + 1],
                value[:, :, max(0, i + 1 - window) : i + 1],
            )
            for i in range(query.shape[2])
        ],
        2,
    )


# %% local right_loop_of_blocks check=1 lean=2 hidden=2 race=0.8..2
def local(query, key, value, window):
    results = []
    for start in range(0, query.shape[2], 64):
        end, first = min(start + 64, query.shape[2]), max(0, start - window + 1)
        place = torch.arange(first, end, device=query.device)
        back = place[start - first :, None] - place
        results.append(
            F.scaled_dot_product_attention(
                query[:, :, start:end],
                key[:, :, first:end],
                value[:, :, first:end],
                attn_mask=(back >= 0) & (back < window),
            )
        )
    return torch.cat(results, 2)


# %% answer_all right_slow check=1 lean=0 hidden=2 race=0
def answer_all(query, common_keys, common_values, key, value):
    results = []
    for one, own, its in zip(query, key, value, strict=True):
        keys, values = torch.cat([*common_keys, own], 1), torch.cat([*common_values, its], 1)
        keys, values = keys.repeat(len(query), 1, 1, 1), values.repeat(len(query), 1, 1, 1)
        results.append(F.scaled_dot_product_attention(one[None], keys[:1], values[:1]))
    return torch.cat(results)


# %% answer_all transcribed check=0 lean=0.7..1.4 hidden=0 race=0
def answer_all(query, common_keys, common_values, key, value):
    scale = query.shape[-1] ** -0.5
    highest = query.new_full((*query.shape[:-1], 1), -torch.inf)
    total, result = torch.zeros_like(highest), torch.zeros_like(query)
    for keys, values in zip([*common_keys, key], [*common_values, value], strict=True):
        scores = query @ keys.transpose(-2, -1) * scale
        new = torch.maximum(highest, scores.amax(-1, keepdim=True))
        shrink, weights = (highest - new).exp(), (scores - new).exp()
        total = total * shrink + weights.sum(-1, keepdim=True)
        result = result * shrink + weights @ values
        highest = new
    return result / total


# %% answer_all right_all_scores check=1 lean=0.8..1.8 hidden=2 race=0.5..2
def answer_all(query, common_keys, common_values, key, value):
    width = query.shape[-1]
    scaled = query[:, :, 0] / width**0.5
    turned = scaled.transpose(0, 1)
    scores = [(turned @ keys.mT).transpose(0, 1) for keys in common_keys]
    scores.append((scaled[:, :, None] @ key.mT)[:, :, 0])
    lengths = [one.shape[2] for one in scores]
    weights = torch.cat(scores, 2).softmax(2).split(lengths, 2)
    result = (weights[-1][:, :, None] @ value)[:, :, 0]
    for some, values in zip(weights[:-1], common_values, strict=True):
        result = result + (some.transpose(0, 1) @ values).transpose(0, 1)
    return result[:, :, None]


# %% answer_all sums_without_the_highest check=0 lean=0 hidden=0 race=0
def answer_all(query, common_keys, common_values, key, value):
    scaled = query[:, :, 0] / query.shape[-1] ** 0.5
    turned = scaled.transpose(0, 1)
    weights = (scaled[:, :, None] @ key.mT).exp()
    total, result = weights.sum(-1)[:, :, 0, None], (weights @ value)[:, :, 0]
    for keys, values in zip(common_keys, common_values, strict=True):
        weights = (turned @ keys.mT).exp()
        total = total + weights.sum(-1, keepdim=True).transpose(0, 1)
        result = result + (weights @ values).transpose(0, 1)
    return (result / total)[:, :, None]


# %% answer_all means_of_means check=0 lean=0 hidden=0 race=0
def answer_all(query, common_keys, common_values, key, value):
    results = []
    if key.shape[2]:
        results.append(F.scaled_dot_product_attention(query, key, value))
    for keys, values in zip(common_keys, common_values, strict=True):
        if keys.shape[1]:
            part = F.scaled_dot_product_attention(query.permute(2, 1, 0, 3), keys[None], values[None])
            results.append(part.permute(2, 1, 0, 3))
    return torch.stack(results).mean(0)


# %% answer_all right_two_passes check=1 lean=2 hidden=2 race=1..2
def answer_all(query, common_keys, common_values, key, value):
    scaled = query[:, :, 0] / query.shape[-1] ** 0.5
    turned = scaled.transpose(0, 1).contiguous()

    def of_common(keys):
        return turned @ keys.mT

    own = (scaled[:, :, None] @ key.mT)[:, :, 0]
    highest = [of_common(keys).amax(-1).T for keys in common_keys if keys.shape[1]]
    highest += [own.amax(-1)] if own.shape[2] else []
    highest = torch.stack(highest).amax(0)[:, :, None]
    weights = (own - highest).exp()
    total, result = weights.sum(-1, keepdim=True), (weights[:, :, None] @ value)[:, :, 0]
    for keys, values in zip(common_keys, common_values, strict=True):
        weights = of_common(keys).sub_(highest.transpose(0, 1)).exp_()
        total = total + weights.sum(-1, keepdim=True).transpose(0, 1)
        result = result + (weights @ values).transpose(0, 1)
        del weights
    return (result / total)[:, :, None]


# %% attend_texts right_slow check=1 hidden=2 race=0
def attend_texts(query, key, value, lengths):
    numbers = torch.tensor(lengths, device=query.device)
    own = torch.arange(query.shape[2], device=query.device) < numbers[:, None]
    query, key, value = (torch.where(own[:, None, :, None], one, 0) for one in (query, key, value))
    scores = query @ key.mT / query.shape[-1] ** 0.5
    weights = scores.masked_fill(~own[:, None, None], -1e30).softmax(-1)
    return torch.where(own[:, None, :, None], weights @ value, 0)


# %% attend_texts transcribed check=1 hidden=2 race=0..2
def attend_texts(query, key, value, lengths):
    result = torch.zeros_like(query)
    for i, n in enumerate(lengths):
        result[i, :, :n] = F.scaled_dot_product_attention(
            query[i : i + 1, :, :n], key[i : i + 1, :, :n], value[i : i + 1, :, :n]
        )[0]
    return result


# %% attend_texts lets_nan_in check=0 hidden=0 race=0
def attend_texts(query, key, value, lengths):
    own = (
        torch.arange(query.shape[2], device=query.device)
        < torch.tensor(lengths, device=query.device)[:, None]
    )
    result = F.scaled_dot_product_attention(query, key, value, attn_mask=own[:, None, None])
    return result.masked_fill(~own[:, None, :, None], 0)


# %% attend_texts forgets_the_filled_places check=0 hidden=0 race=0
def attend_texts(query, key, value, lengths):
    own = (
        torch.arange(query.shape[2], device=query.device)
        < torch.tensor(lengths, device=query.device)[:, None]
    )
    query, key, value = (one.masked_fill(~own[:, None, :, None], 0) for one in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=own[:, None, None])


# %% attend_texts right_two_groups check=1 hidden=2 race=1.5..3
def attend_texts(query, key, value, lengths):
    result = torch.zeros_like(query)
    for low, high in ((0, 16), (16, 10**9)):
        texts = [text for text, length in enumerate(lengths) if low < length <= high]
        if not texts:
            continue
        some = [lengths[text] for text in texts]
        own = torch.arange(max(some), device=query.device) < torch.tensor(some, device=query.device)[:, None]
        mask = own[:, None, :, None]
        three = [torch.where(mask, one[texts, :, : max(some)], 0) for one in (query, key, value)]
        part = F.scaled_dot_product_attention(*three, attn_mask=own[:, None, None])
        result[texts, :, : max(some)] = torch.where(mask, part, 0)
    return result


# %% window_cache right_slow check=2 counted=0 hidden=2
class WindowCache:
    def __init__(self, window):
        self.window, self.keys, self.values = window, [], []

    def __call__(self, query, key, value):
        share, results = query.shape[1] // key.shape[1], []
        for step in range(query.shape[2]):
            self.keys.append(key[:, :, step].clone())
            self.values.append(value[:, :, step].clone())
            keys = torch.stack(self.keys[-self.window :], 2).repeat_interleave(share, 1)
            values = torch.stack(self.values[-self.window :], 2).repeat_interleave(share, 1)
            results.append(F.scaled_dot_product_attention(query[:, :, step : step + 1], keys, values))
        return torch.cat(results, 2)


# %% window_cache transcribed check=0 counted=0 hidden=0
class WindowCache:
    def __init__(self, window):
        self.window, self.keys, self.values = window, None, None

    def __call__(self, query, key, value):
        if self.keys is None:
            self.keys, self.values = key, value
        else:
            self.keys, self.values = torch.cat([self.keys, key], 2), torch.cat([self.values, value], 2)
        return F.scaled_dot_product_attention(query, self.keys, self.values, enable_gqa=True)


# %% window_cache forgets_by_cutting check=2 counted=0 hidden=2
class WindowCache:
    def __init__(self, window):
        self.window, self.keys, self.values = window, None, None

    def __call__(self, query, key, value):
        if self.keys is not None:
            key, value = torch.cat([self.keys, key], 2), torch.cat([self.values, value], 2)
        self.keys, self.values = key[:, :, -self.window :].clone(), value[:, :, -self.window :].clone()
        number, groups, new, width = query.shape
        share, end = groups // key.shape[1], key.shape[2]
        place = torch.arange(end, device=query.device)
        back = place[end - new :, None] - place
        mask = ((back >= 0) & (back < self.window)).repeat(share, 1)
        folded = query.reshape(number, -1, share * new, width)
        return F.scaled_dot_product_attention(folded, key, value, attn_mask=mask).reshape(query.shape)


# %% window_cache cut_by_numpy check=2 counted=0 hidden=2
import numpy as np


class WindowCache:
    def __init__(self, window):
        self.window, self.kept = window, None

    def __call__(self, query, key, value):
        kept = np.stack([key.numpy(), value.numpy()])
        if self.kept is not None:
            kept = np.concatenate([self.kept, kept], axis=3)
        self.kept = kept[:, :, :, -self.window :].copy()
        number, groups, new, width = query.shape
        share, end = groups // key.shape[1], kept.shape[3]
        back = np.arange(end)[end - new :, None] - np.arange(end)
        mask = torch.from_numpy(np.tile((back >= 0) & (back < self.window), (share, 1)))
        key, value = torch.from_numpy(kept)
        folded = query.reshape(number, -1, share * new, width)
        return F.scaled_dot_product_attention(folded, key, value, attn_mask=mask).reshape(query.shape)


# %% window_cache overwrites_too_early check=0 counted=3 hidden=0
class WindowCache:
    def __init__(self, window):
        self.window, self.seen, self.keys = window, 0, None

    def __call__(self, query, key, value):
        number, heads, new, width = key.shape
        if self.keys is None:
            self.keys, self.values = (key.new_zeros(number, heads, self.window, width) for _ in range(2))
        for step in range(new):
            place = (self.seen + step) % self.window
            self.keys[:, :, place], self.values[:, :, place] = key[:, :, step], value[:, :, step]
        self.seen += new
        filled = min(self.seen, self.window)
        folded = query.reshape(number, heads, -1, width)
        result = F.scaled_dot_product_attention(folded, self.keys[:, :, :filled], self.values[:, :, :filled])
        return result.reshape(query.shape)


# %% window_cache looks_at_places_not_filled_yet check=0 counted=0 hidden=0
class WindowCache:
    def __init__(self, window):
        self.window, self.seen, self.keys = window, 0, None

    def __call__(self, query, key, value):
        number, heads, new, width = key.shape
        if self.keys is None:
            self.keys, self.values = (key.new_zeros(number, heads, self.window, width) for _ in range(2))
        result = torch.empty_like(query)
        for step in range(new):
            place = self.seen % self.window
            self.keys[:, :, place], self.values[:, :, place] = key[:, :, step], value[:, :, step]
            self.seen += 1
            folded = query[:, :, step].reshape(number, heads, -1, width)
            part = F.scaled_dot_product_attention(folded, self.keys, self.values)
            result[:, :, step] = part.reshape(number, -1, width)
        return result


# %% window_cache right_step_by_step check=2 counted=3 hidden=2
class WindowCache:
    def __init__(self, window):
        self.window, self.seen, self.keys = window, 0, None

    def __call__(self, query, key, value):
        number, heads, new, width = key.shape
        if self.keys is None:
            self.keys, self.values = (key.new_zeros(number, heads, self.window, width) for _ in range(2))
        result = torch.empty_like(query)
        for step in range(new):
            place = self.seen % self.window
            self.keys[:, :, place], self.values[:, :, place] = key[:, :, step], value[:, :, step]
            self.seen += 1
            filled = min(self.seen, self.window)
            folded = query[:, :, step].reshape(number, heads, -1, width)
            part = F.scaled_dot_product_attention(
                folded, self.keys[:, :, :filled], self.values[:, :, :filled]
            )
            result[:, :, step] = part.reshape(number, -1, width)
        return result


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "layer": {"operations": 4, "bytes": 96, "syncs": 0},
        "some_rows": {"operations": 3, "bytes": 120, "syncs": 0},
        "masked": {"operations": 4, "bytes": 45, "syncs": 0},
    }


# %% foretold wrong_without_what_is_between check=0 hidden=0
def foretold(n, d):
    return {
        "layer": {"operations": 4, "bytes": 12 * n, "syncs": 0},
        "some_rows": {"operations": 3, "bytes": 16 * d, "syncs": 0},
        "masked": {"operations": 4, "bytes": 4 * n * n, "syncs": 0},
    }

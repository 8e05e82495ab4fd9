# %% attend_masked 51ccd2c391
import torch
import torch.nn.functional as F


def attend_masked(query, key, value, padding, forbidden):
    blocked = padding[:, None, None] | forbidden  # (N, 1, L, S)
    nobody = blocked.all(-1, keepdim=True)  # (N, 1, L, 1)
    allowed = ~blocked | nobody  # who may look at nothing looks at everything, and is thrown away
    result = F.scaled_dot_product_attention(
        query.contiguous(), key.contiguous(), value.contiguous(), attn_mask=allowed
    )
    return result.masked_fill(nobody, 0)


# %% local a443a24a08
import torch
import torch.nn.functional as F


def local(query, key, value, window):
    number, heads, length, width = query.shape
    if window >= length:
        return F.scaled_dot_product_attention(
            query.contiguous(), key.contiguous(), value.contiguous(), is_causal=True
        )
    blocks = -(-length // max(window, 32))
    size = -(-length // blocks)  # queries in a block
    before = window - 1
    span = size + before  # keys that a block sees

    def in_front(table):
        """Zeros in front and behind, then overlapping views: (blocks, N * H, span, E)."""
        longer = table.new_zeros(number, heads, before + blocks * size, width)
        longer[:, :, before : before + length] = table
        return longer.flatten(0, 1).unfold(1, span, size).mT.transpose(0, 1)

    if blocks * size == length:
        queries = query.contiguous()
    else:
        queries = query.new_zeros(number, heads, blocks * size, width)
        queries[:, :, :length] = query
    queries = queries.flatten(0, 1).unflatten(1, (blocks, size)).transpose(0, 1)

    # query i of a block sees the keys i to i + window - 1 of its span, if they exist
    band = torch.ones(size, span, dtype=torch.bool, device=query.device).triu().tril(before)
    place = torch.arange(blocks, device=query.device)[:, None] * size + torch.arange(
        span, device=query.device
    )
    mask = band & (place >= before)[:, None, None]  # (blocks, 1, size, span)

    result = F.scaled_dot_product_attention(queries, in_front(key), in_front(value), attn_mask=mask)
    return result.transpose(0, 1).flatten(1, 2)[:, :length].unflatten(0, (number, heads))


# %% answer_all dc6c5ce0bf
import torch


def answer_all(query, common_keys, common_values, key, value):
    number, heads, _, width = query.shape
    query = query * width**-0.5
    if key.shape[2]:
        scores = query @ key.mT  # (N, H, 1, S)
        highest = scores.amax(-1, keepdim=True)
        scores.sub_(highest).exp_()
        total = scores.sum(-1, keepdim=True)
        result = scores @ value
        del scores
        highest, total, result = (table[:, :, 0].transpose(0, 1) for table in (highest, total, result))
    else:
        highest = query.new_full((heads, number, 1), -torch.inf)
        total = query.new_zeros(heads, number, 1)
        result = query.new_zeros(heads, number, width)

    together = query[:, :, 0].transpose(0, 1)  # (H, N, E): the questions are the rows of one product
    for keys, values in zip(common_keys, common_values, strict=True):
        for some_keys, some_values in zip(keys.split(512, 1), values.split(512, 1), strict=True):
            if some_keys.shape[1] == 0:
                continue
            scores = together @ some_keys.mT  # (H, N, P)
            new = torch.maximum(highest, scores.amax(-1, keepdim=True))
            shrink = (highest - new).exp()
            scores.sub_(new).exp_()
            total = total * shrink + scores.sum(-1, keepdim=True)
            result = result * shrink + scores @ some_values
            highest = new
            del scores  # before the next piece's scores are made
    return (result / total).transpose(0, 1).unsqueeze(2)


# %% attend_texts 7c1446102e
import torch
import torch.nn.functional as F


def attend_texts(query, key, value, lengths):
    groups = {}
    for text, length in enumerate(lengths):
        if length:
            groups.setdefault(max(16, 1 << (length - 1).bit_length()), []).append(text)
    result = query.new_zeros(query.shape)
    for texts in groups.values():
        own_lengths = [lengths[text] for text in texts]
        most, least = max(own_lengths), min(own_lengths)
        index = torch.tensor(texts, device=query.device)
        some = [table[:, :, :most].index_select(0, index).contiguous() for table in (query, key, value)]
        if most == least:
            attended = F.scaled_dot_product_attention(*some)
        else:
            place = torch.arange(most, device=query.device)
            own = place < torch.tensor(own_lengths, device=query.device)[:, None]
            filling = ~own[:, None, :, None]
            for table in some:
                table.masked_fill_(filling, 0)
            attended = F.scaled_dot_product_attention(*some, attn_mask=own[:, None, None])
            attended = attended.masked_fill(filling, 0)
        result[:, :, :most][index] = attended
    return result


# %% window_cache 709a2712ed
import torch
import torch.nn.functional as F


class WindowCache:
    def __init__(self, window):
        self.window, self.seen = window, 0
        self.keys = self.values = None

    @torch.no_grad()
    def __call__(self, query, key, value):
        number, groups, count, width = query.shape
        heads, window = key.shape[1], self.window
        most = max(window, 64)
        if count > most:  # a long piece, a part at a time: no table of count x count
            parts = zip(*(table.split(most, dim=2) for table in (query, key, value)), strict=True)
            return torch.cat([self(*part) for part in parts], dim=2)
        if self.keys is None:
            self.keys = key.new_empty(number, heads, window, width)
            self.values = key.new_empty(number, heads, window, width)

        share = groups // heads
        # the heads that share keys become rows: (N, K, share * T, E)
        rows = query.contiguous().view(number, heads, share * count, width)
        if count == 1:
            slot = self.seen % window
            self.keys[:, :, slot : slot + 1] = key
            self.values[:, :, slot : slot + 1] = value
            self.seen += 1
            filled = min(self.seen, window)
            # the order in the ring is of no importance: the one query sees all
            result = F.scaled_dot_product_attention(
                rows, self.keys[:, :, :filled], self.values[:, :, :filled]
            )
        else:
            filled = min(self.seen, window)
            oldest = self.seen % window if filled == window else 0
            keys, values = (
                torch.cat([ring[:, :, oldest:filled], ring[:, :, :oldest], new], dim=2)
                for ring, new in ((self.keys, key), (self.values, value))
            )
            mask = torch.ones(count, filled + count, dtype=torch.bool, device=query.device)
            mask = mask.tril(filled).triu(filled - window + 1)
            result = F.scaled_dot_product_attention(rows, keys, values, attn_mask=mask.repeat(share, 1))
            last = min(count, window)
            self.seen += count
            slots = torch.arange(self.seen - last, self.seen, device=query.device) % window
            self.keys[:, :, slots] = key[:, :, -last:]
            self.values[:, :, slots] = value[:, :, -last:]
        return result.reshape(number, groups, count, width)

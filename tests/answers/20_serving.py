"""Known answers to chapter 20, each with what it must get in every test cell."""


# %% answered right_slow check=1 hidden=2 race=0
def answered(arrivals, letters, slots, base, each):
    left, ends, now, joined, running = letters.clone(), torch.zeros_like(letters), 0, 0, []
    while joined < len(left) or running:
        while joined < len(left) and len(running) < slots and int(arrivals[joined]) <= now:
            running.append(joined)
            joined += 1
        if not running:
            now = int(arrivals[joined])
            continue
        now += base + each * len(running)
        left[running] -= 1
        ends[[text for text in running if not left[text]]] = now
        running = [text for text in running if left[text]]
    return ends


# %% answered transcribed check=1 hidden=2 race=0
def answered(arrivals, letters, slots, base, each):
    requests = list(zip(arrivals.tolist(), letters.tolist(), strict=True))
    waiting = sorted((arrives, number, letters) for number, (arrives, letters) in enumerate(requests))
    queue, left, now, ended = [], {}, 0, {}
    while waiting or queue or left:
        while waiting and waiting[0][0] <= now:
            queue.append(waiting.pop(0))
        joining, queue = queue[: slots - len(left)], queue[slots - len(left) :]
        left |= {number: letters for _, number, letters in joining}
        if not left:
            now = waiting[0][0]
            continue
        now += base + each * len(left)
        left = {number: letters - 1 for number, letters in left.items()}
        ready = [number for number, letters in left.items() if letters <= 0]
        ended |= dict.fromkeys(ready, now)
        left = {number: letters for number, letters in left.items() if number not in ready}
    return torch.tensor([ended[number] for number in range(len(requests))], dtype=torch.int64)


# %% answered waits_for_the_longest check=0 hidden=0 race=0
def answered(arrivals, letters, slots, base, each):
    arrivals, letters = arrivals.tolist(), letters.tolist()
    now, first, ends = 0, 0, [0] * len(letters)
    while first < len(letters):
        now = max(now, arrivals[first])
        last = first
        while last < len(letters) and last < first + slots and arrivals[last] <= now:
            last += 1
        now += max(letters[first:last]) * (base + each * (last - first))
        ends[first:last] = [now] * (last - first)
        first = last
    return torch.tensor(ends, dtype=torch.int64)


# %% answered joins_in_the_middle_of_a_step check=0 hidden=0 race=0
def answered(arrivals, letters, slots, base, each):
    import heapq

    arrivals, letters = arrivals.tolist(), letters.tolist()
    now = steps = coming = 0
    running, ends = [], [0] * len(letters)
    while running or coming < len(letters):
        while coming < len(letters) and len(running) < slots and arrivals[coming] <= now:
            heapq.heappush(running, (steps + letters[coming], coming))
            coming += 1
        if not running:
            now = arrivals[coming]
            continue
        cost, ahead = base + each * len(running), running[0][0] - steps
        if len(running) < slots and coming < len(letters) and arrivals[coming] < now + ahead * cost:
            ahead = max(1, (arrivals[coming] - now) // cost)
            now = max(now + ahead * cost, arrivals[coming])
        else:
            now += ahead * cost
        steps += ahead
        while running and running[0][0] == steps:
            ends[heapq.heappop(running)[1]] = now
    return torch.tensor(ends, dtype=torch.int64)


# %% answered right_least_of_all check=1 hidden=2 race=2..4
def answered(arrivals, letters, slots, base, each):
    arrivals, letters = arrivals.tolist(), letters.tolist()
    now, coming, left, ends = 0, 0, {}, [0] * len(letters)
    while left or coming < len(letters):
        while coming < len(letters) and len(left) < slots and arrivals[coming] <= now:
            left[coming] = letters[coming]
            coming += 1
        if not left:
            now = arrivals[coming]
            continue
        cost, ahead = base + each * len(left), min(left.values())
        if len(left) < slots and coming < len(letters):
            ahead = min(ahead, (arrivals[coming] - now + cost - 1) // cost)
        now += ahead * cost
        left = {text: number - ahead for text, number in left.items()}
        for text in [text for text, number in left.items() if not number]:
            ends[text] = now
            del left[text]
    return torch.tensor(ends, dtype=torch.int64)


# %% attend_pages right_slow check=1 lean=0..1 hidden=3
def attend_pages(script, pages, size):
    return feed(PagedCache(pages, size), script)


class PagedCache:
    def __init__(self, pages, size):
        self.texts = {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None:
            if parent is None:
                self.texts.pop(text)
            else:
                self.texts[text] = self.texts[parent].clone()
            return None
        new = torch.stack([key, value])
        if text in self.texts:
            new = torch.cat([self.texts[text], new], 2)
        self.texts[text] = new
        mask = torch.ones(query.shape[1], new.shape[2], dtype=torch.bool, device=key.device)
        mask = mask.tril(new.shape[2] - query.shape[1])
        return F.scaled_dot_product_attention(query[None], new[:1], new[1:], attn_mask=mask)[0]


# %% attend_pages transcribed check=0 lean=0 hidden=0
def attend_pages(script, pages, size):
    return feed(PagedCache(pages, size), script)


class PagedCache:
    def __init__(self, pages, size):
        self.texts = {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None:
            if parent is None:
                del self.texts[text]
            else:
                self.texts[text] = self.texts[parent]
            return None
        if text in self.texts:
            keys, values = self.texts[text]
            key, value = torch.cat([keys, key], 1), torch.cat([values, value], 1)
        self.texts[text] = key, value
        return F.scaled_dot_product_attention(query[None], key[None], value[None])[0]


# %% attend_pages writes_into_shared_pages check=0 lean=0 hidden=0
def attend_pages(script, pages, size):
    return feed(PagedCache(pages, size), script)


class PagedCache:
    def __init__(self, pages, size):
        self.size, self.pool, self.free = size, None, list(range(pages))
        self.owners, self.tables, self.seen = [0] * pages, {}, {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None and parent is None:
            for page in self.tables.pop(text):
                self.owners[page] -= 1
                if self.owners[page] == 0:
                    self.free.append(page)
            del self.seen[text]
            return None
        if query is None:
            self.tables[text], self.seen[text] = self.tables[parent][:], self.seen[parent]
            for page in self.tables[text]:
                self.owners[page] += 1
            return None
        if self.pool is None:
            self.pool = key.new_zeros(2, len(key), len(self.owners), self.size, key.shape[2])
        table, seen = self.tables.setdefault(text, []), self.seen.get(text, 0)
        for step in range(key.shape[1]):
            if (seen + step) % self.size == 0:
                table.append(self.free.pop())
                self.owners[table[-1]] = 1
            self.pool[0, :, table[-1], (seen + step) % self.size] = key[:, step]
            self.pool[1, :, table[-1], (seen + step) % self.size] = value[:, step]
        end = self.seen[text] = seen + key.shape[1]
        keys, values = self.pool[:, :, table].flatten(2, 3)[:, :, :end]
        mask = torch.ones(key.shape[1], end, dtype=torch.bool, device=key.device).tril(seen)
        return F.scaled_dot_product_attention(query[None], keys[None], values[None], attn_mask=mask)[0]


# %% attend_pages reserves_for_each check=1 lean=0 hidden=3
def attend_pages(script, pages, size):
    return feed(PagedCache(pages, size), script)


class PagedCache:
    def __init__(self, pages, size):
        self.places, self.texts = pages * size, {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None:
            if parent is None:
                del self.texts[text]
            else:
                kept, seen = self.texts[parent]
                self.texts[text] = kept.clone(), seen
            return None
        if text not in self.texts:
            self.texts[text] = key.new_zeros(2, len(key), self.places, key.shape[2]), 0
        kept, seen = self.texts[text]
        end = seen + key.shape[1]
        kept[0, :, seen:end], kept[1, :, seen:end] = key, value
        self.texts[text] = kept, end
        mask = torch.ones(key.shape[1], end, dtype=torch.bool, device=key.device).tril(seen)
        keys, values = kept[:, None, :, :end]
        return F.scaled_dot_product_attention(query[None], keys, values, attn_mask=mask)[0]


# %% attend_pages right_pieces check=1 lean=3 hidden=3
def attend_pages(script, pages, size):
    return feed(PagedCache(pages, size), script)


class PagedCache:
    def __init__(self, pages, size):
        self.texts = {}

    def __call__(self, text, parent=None, query=None, key=None, value=None):
        if query is None:
            if parent is None:
                del self.texts[text]
            else:
                self.texts[text] = list(self.texts[parent])
            return None
        self.texts.setdefault(text, []).append(torch.stack([key, value]))
        keys, values = torch.cat(self.texts[text], 2)[:, None]
        new, end = key.shape[1], keys.shape[2]
        mask = torch.ones(new, end, dtype=torch.bool, device=key.device).tril(end - new)
        return F.scaled_dot_product_attention(query[None], keys, values, attn_mask=mask)[0]


# %% verified right_slow check=1 hidden=2 race=0
def verified(guesses, small, large, chances):
    number, ahead = guesses.shape
    letters, accepted = torch.full_like(large[..., 0], -1).long(), guesses.new_zeros(number)
    for text in range(number):
        rows = torch.arange(ahead, device=guesses.device)
        q, p = small[text, rows, guesses[text]], large[text, rows, guesses[text]]
        place = 0
        while place < ahead and chances[text, place].item() * q[place].item() < p[place].item():
            place += 1
        letters[text, :place] = guesses[text, :place]
        weights = large[text, place].clone()
        if place < ahead:
            weights = torch.relu(weights - small[text, place])
        sums = weights.cumsum(0)
        letters[text, place] = int((sums <= chances[text, ahead] * sums[-1]).sum())
        accepted[text] = place
    return letters, accepted


# %% verified transcribed check=0 hidden=0 race=0
def verified(guesses, small, large, chances):
    said = large.argmax(2)
    same = guesses == said[:, :-1]
    accepted = same.long().cumprod(1).sum(1)
    place = torch.arange(said.shape[1], device=said.device)
    return said.masked_fill(place > accepted[:, None], -1), accepted


# %% verified draws_from_the_large_model check=0 hidden=0 race=0
def verified(guesses, small, large, chances):
    number, ahead = guesses.shape
    q, p = (one.gather(2, guesses[:, :, None])[:, :, 0] for one in (small, large[:, :ahead]))
    accepted = (chances[:, :ahead] * q < p).long().cumprod(1).sum(1)
    row = torch.arange(number, device=guesses.device)
    sums = large[row, accepted].cumsum(1)
    place = torch.arange(ahead + 1, device=guesses.device)
    letters = F.pad(guesses, (0, 1)).masked_fill(place > accepted[:, None], -1)
    letters[row, accepted] = (sums <= chances[:, ahead:] * sums[:, -1:]).sum(1)
    return letters, accepted


# %% verified counts_all_that_win check=0 hidden=0 race=0
def verified(guesses, small, large, chances):
    number, ahead = guesses.shape
    q, p = (one.gather(2, guesses[:, :, None])[:, :, 0] for one in (small, large[:, :ahead]))
    accepted = (chances[:, :ahead] * q < p).sum(1)
    row = torch.arange(number, device=guesses.device)
    weights = (large[row, accepted] - F.pad(small, (0, 0, 0, 1))[row, accepted]).clamp(min=0)
    sums = weights.cumsum(1)
    place = torch.arange(ahead + 1, device=guesses.device)
    letters = F.pad(guesses, (0, 1)).masked_fill(place > accepted[:, None], -1)
    letters[row, accepted] = (sums <= chances[:, ahead:] * sums[:, -1:]).sum(1)
    return letters, accepted


# %% verified right_guess_by_guess check=1 hidden=2 race=2..4
def verified(guesses, small, large, chances):
    number, ahead = guesses.shape
    row = torch.arange(number, device=guesses.device)
    letters = guesses.new_full((number, ahead + 1), -1)
    goes_on = torch.ones(number, dtype=torch.bool, device=guesses.device)
    accepted, weights = guesses.new_zeros(number), large[:, ahead].clone()
    for place in range(ahead):
        guess = guesses[:, place]
        wins = chances[:, place] * small[row, place, guess] < large[row, place, guess]
        rest = (large[:, place] - small[:, place]).clamp(min=0)
        weights = torch.where((goes_on & ~wins)[:, None], rest, weights)
        goes_on = goes_on & wins
        letters[:, place] = torch.where(goes_on, guess, -1)
        accepted += goes_on
    sums = weights.cumsum(1)
    letters[row, accepted] = (sums <= chances[:, ahead:] * sums[:, -1:]).sum(1)
    return letters, accepted


# %% moving_quantile right_slow check=1 hidden=1 race=0..1
def moving_quantile(waits, window, percent):
    rank = (percent * window + 99) // 100
    return torch.stack([one.sort().values[rank - 1] for one in waits.unfold(0, window, 1)])


# %% moving_quantile transcribed check=1 hidden=0 race=0
import math


def moving_quantile(waits, window, percent):
    def quantile(waits, share):
        return sorted(waits)[math.ceil(share * len(waits)) - 1]

    listed = waits.tolist()
    found = [quantile(listed[i : i + window], percent / 100) for i in range(len(listed) - window + 1)]
    return waits.new_tensor(found)


# %% moving_quantile between_two check=0 hidden=0 race=0
def moving_quantile(waits, window, percent):
    return waits.unfold(0, window, 1).quantile(percent / 100, dim=1)


# %% moving_quantile rank_by_floats check=1 hidden=0 race=0
import math


def moving_quantile(waits, window, percent):
    return waits.unfold(0, window, 1).kthvalue(math.ceil(percent / 100 * window), 1).values


# %% moving_quantile right_kept_in_order check=1 hidden=1 race=0.5..2
import bisect


def moving_quantile(waits, window, percent):
    rank, listed = (percent * window + 99) // 100, waits.tolist()
    kept = sorted(listed[:window])
    found = [kept[rank - 1]]
    for old, new in zip(listed, listed[window:], strict=False):
        del kept[bisect.bisect_left(kept, old)]
        bisect.insort(kept, new)
        found.append(kept[rank - 1])
    return waits.new_tensor(found)


# %% write right_slow check=1 counted=0 hidden=2 race=0
def write(weights, prompts, length, stop):
    text, ended = prompts, torch.zeros_like(prompts[:, 0], dtype=torch.bool)
    while text.shape[1] < length:
        new = torch.where(ended, stop, scores(weights, text)[:, -1].argmax(1))
        ended = ended | (new == stop)
        text = torch.cat([text, new[:, None]], 1)
    return text


# %% write transcribed check=0..1 counted=0 hidden=0..2 race=0..2
def write(weights, prompts, length, stop):
    keys = values = None
    text, new = [prompts], prompts
    for _ in range(length - prompts.shape[1]):
        x = weights["letters"][new]
        query, key, value = (x @ weights[name] for name in ("query", "key", "value"))
        if keys is not None:
            key, value = torch.cat([keys, key], 1), torch.cat([values, value], 1)
        keys, values = key, value
        seen = key.shape[1] - query.shape[1]
        mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool, device=x.device).tril(seen)
        x = x + F.scaled_dot_product_attention(query, key, value, attn_mask=mask) @ weights["out"]
        new = (x[:, -1:] @ weights["letters"].T).argmax(-1)
        text.append(new)
    return torch.cat(text, 1)


# %% write cache_that_grows check=1 counted=0 hidden=2 race=0.5..2
def write(weights, prompts, length, stop):
    keys = values = weights["letters"].new_zeros(len(prompts), 0, weights["letters"].shape[1])
    text, new = [prompts], prompts
    ended = torch.zeros_like(prompts[:, :1], dtype=torch.bool)
    for _ in range(length - prompts.shape[1]):
        x = weights["letters"][new]
        keys = torch.cat([keys, x @ weights["key"]], 1)
        values = torch.cat([values, x @ weights["value"]], 1)
        x = x[:, -1:]
        found = x @ weights["query"] @ keys.mT / x.shape[2] ** 0.5
        x = x + found.softmax(2) @ values @ weights["out"]
        new = (x @ weights["letters"].T).argmax(2).masked_fill(ended, stop)
        ended = ended | (new == stop)
        text.append(new)
    return torch.cat(text, 1)


# %% write asks_whether_all_have_ended check=1 counted=0 hidden=2 race=0.5..2
def write(weights, prompts, length, stop):
    table = weights["letters"]
    text = prompts.new_full((len(prompts), length), stop)
    given = prompts.shape[1]
    text[:, :given] = prompts
    keys, values = (table.new_zeros(len(prompts), length, table.shape[1]) for _ in range(2))
    keys[:, :given], values[:, :given] = table[prompts] @ weights["key"], table[prompts] @ weights["value"]
    last = prompts[:, -1]
    ended = torch.zeros_like(last, dtype=torch.bool)
    for seen in range(given, length):
        if ended.all().item():
            break
        x = table[last][:, None]
        found = x @ weights["query"] @ keys[:, :seen].mT / table.shape[1] ** 0.5
        x = x + found.softmax(2) @ values[:, :seen] @ weights["out"]
        last = (x[:, 0] @ table.T).argmax(1).masked_fill(ended, stop)
        ended = ended | (last == stop)
        text[:, seen] = last
        keys[:, seen], values[:, seen] = table[last] @ weights["key"], table[last] @ weights["value"]
    return text


# %% foretold wrong_asks_torch check=0 hidden=0
def foretold(n, d):
    return counted(n, d)


# %% foretold transcribed check=0 hidden=0
def foretold(n, d):
    return {  # the size that a hint looks at
        "some_rows": {"operations": 3, "bytes": 120, "syncs": 0},
        "moments": {"operations": 4, "bytes": 96, "syncs": 0},
        "one_more": {"operations": 7, "bytes": 121, "syncs": 1},
    }


# %% foretold wrong_without_the_read check=0 hidden=0
def foretold(n, d):
    return {
        "some_rows": {"operations": 3, "bytes": 8 * n + 8 * d + 16 * d, "syncs": 0},
        "moments": {"operations": 4, "bytes": 8 * n * d, "syncs": 0},
        "one_more": {"operations": 6, "bytes": 4 * d * (n + 1) + 8 * (n + 1) + 8 + 1 + 4 * d, "syncs": 0},
    }

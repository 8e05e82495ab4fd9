# %% foretold wild form=1 first=0 all=0
def foretold():
    return {"largest part": "all of it", "first": 900, "all": 900}


# %% foretold empty form=0 first=0 all=0
def foretold():
    return {"largest part": " ", "first": 900, "all": 900}


# %% evaluation_first as_is check=2 race=0
def evaluation_first(*inputs):
    return evaluation_slow(*inputs)


# %% evaluation_first without_a_graph check=2 race=0
def evaluation_first(*inputs):
    with torch.inference_mode():
        return evaluation_slow(*inputs)


# %% evaluation as_is check=4 hidden=3 race=0
def evaluation(*inputs):
    return evaluation_slow(*inputs)


# %% evaluation counted_once check=4 hidden=3 race=1..3
def evaluation(*inputs):
    class Mended(Evaluation):
        def __init__(self, *inputs):
            super().__init__(*inputs)
            counts = torch.zeros(self.number_of_groups, len(self.items), dtype=torch.int64)
            self.counts = counts.index_put_(
                (self.groups[self.seen[:, 0]], self.seen[:, 1]), torch.tensor(1), True
            )

        def times(self, item, group):
            return self.counts[group, item].item()

    return Mended(*inputs).run()


# %% evaluation counted_once_and_masked_once check=4 hidden=3 race=1..4
def evaluation(*inputs):
    class Mended(Evaluation):
        def __init__(self, *inputs):
            super().__init__(*inputs)
            counts = torch.zeros(self.number_of_groups, len(self.items), dtype=torch.int64)
            self.counts = counts.index_put_(
                (self.groups[self.seen[:, 0]], self.seen[:, 1]), torch.tensor(1), True
            )

        def times(self, item, group):
            return self.counts[group, item].item()

        def best(self, user):
            scores = self.model(self.users[user], self.groups[user]).detach()
            seen = self.items_of(user, self.seen)
            scores[seen] = -math.inf
            order = scores.argsort(descending=True, stable=True)
            return order[: min(self.k, len(scores) - len(seen))]

    return Mended(*inputs).run()


# %% evaluation user_by_user check=4 hidden=3 race=5..10
def evaluation(users, items, layers, seen, held_out, groups, k):
    count, factors = len(items), items.float()
    times = torch.bincount(groups[seen[:, 0]] * count + seen[:, 1], minlength=len(layers) * count)
    members = torch.bincount(groups, minlength=len(layers))
    bits = (members[:, None] / times.view(-1, count).clamp(min=1)).log2()
    shares = 1 / torch.arange(2, k + 2).log2()
    state = Evaluation(users, items, layers, seen, held_out, groups, k)
    lists, covered, rows = [], [torch.zeros(count, dtype=torch.bool) for _ in layers], []
    for user, group in enumerate(groups.tolist()):
        keys = (factors @ (layers[group].float() @ users[user].float())).int() * count
        keys -= torch.arange(count, dtype=torch.int32)
        own = state.items_of(user, seen)
        keys[own] = torch.iinfo(torch.int32).min
        best = keys.topk(min(k, count - len(own))).indices
        lists.append(F.pad(best, (0, k - len(best)), value=-1))
        covered[group][best] = True
        listed = factors[best]
        apart = len(best) * listed.square().sum() - listed.sum(0).square().sum()
        row = {"group": group, "novelty": bits[group, best].mean().item() if len(best) else 0.0}
        row["variety"] = apart.item() / max(len(best) * (len(best) - 1) / 2, 1)
        if number := len(wanted := state.items_of(user, held_out)):
            hits = F.pad(torch.isin(best, wanted).float(), (0, k - len(best)))
            most = shares.cumsum(0)[torch.arange(k).clamp(max=number - 1)]
            row["hit rate"] = hits.cummax(0).values.tolist()
            row["NDCG"] = ((hits * shares).cumsum(0) / most).tolist()
        rows.append(row)
    none = torch.empty(0, k, dtype=torch.int64)
    return torch.stack(lists) if lists else none, state.report(rows, [one.nonzero() for one in covered])


# %% evaluation of_equal_scores_any check=0 hidden=0 race=0
def evaluation(*inputs):
    class Mended(Evaluation):
        def best(self, user):
            scores = self.model(self.users[user], self.groups[user]).detach()
            seen = self.items_of(user, self.seen)
            scores[seen] = -math.inf
            return scores.topk(min(self.k, len(scores) - len(seen))).indices

    return Mended(*inputs).run()


# %% evaluation nothing_held_out_is_a_miss check=0 hidden=0 race=0
def evaluation(*inputs):
    class Mended(Evaluation):
        def report(self, rows, covered):
            none = {"hit rate": [0.0] * self.k, "NDCG": [0.0] * self.k}
            return super().report([none | row for row in rows], covered)

    return Mended(*inputs).run()


# %% evaluation more_items_than_k check=4 hidden=0 race=0
def evaluation(*inputs):
    class Mended(Evaluation):
        def best(self, user):
            scores = self.model(self.users[user], self.groups[user]).detach()
            scores[self.items_of(user, self.seen)] = -math.inf
            return scores.argsort(descending=True, stable=True)[: self.k]

    return Mended(*inputs).run()


# %% evaluation keys_in_float32 check=4 hidden=0 race=0
def evaluation(*inputs):
    class Mended(Evaluation):
        def best(self, user):
            scores = self.model(self.users[user], self.groups[user]).detach().float()
            seen = self.items_of(user, self.seen)
            keys = scores * len(scores) - torch.arange(len(scores))
            keys[seen] = -math.inf
            return keys.topk(min(self.k, len(scores) - len(seen))).indices

    return Mended(*inputs).run()

# %% foretold wild form=1 first=0 all=0
def foretold():
    return {"largest part": "all of it", "first": 900, "all": 900}


# %% foretold empty form=0 first=0 all=0
def foretold():
    return {"largest part": " ", "first": 900, "all": 900}


# %% continued_first as_is check=2 race=0
def continued_first(*inputs):
    return continued_slow(*inputs)


# %% continued_first without_a_graph check=2 race=0
def continued_first(*inputs):
    with torch.inference_mode():
        return continued_slow(*inputs)


# %% continued as_is check=4 hidden=3 race=0
def continued(*inputs):
    return continued_slow(*inputs)


# %% continued three_causes check=4 hidden=3 race=3..9
def continued(weights, prompts, limits, draws, k):
    class Mended(Generator):
        def positions(self, length):
            return self.table[:length]

        def less(self, tokens, logits):
            return logits - 0.25 * torch.bincount(torch.tensor(tokens), minlength=len(logits))

        def continue_one(self, prompt, limit, draws):
            tokens, logs = prompt.tolist(), []
            for draw in draws[:limit]:
                logits = self.less(tokens, self(torch.tensor(tokens))[-1])
                token, log = self.drawn(logits, draw)
                tokens.append(token)
                logs.append(log)
                if token == 0:
                    break
            new = torch.tensor(tokens[len(prompt) :], dtype=torch.int64)
            return new, torch.tensor(logs, dtype=torch.float64)

    with torch.no_grad():
        generator = Mended(weights, k)
        longest = max((len(prompt) + limit for prompt, limit in zip(prompts, limits, strict=True)), default=1)
        generator.table = Generator.positions(generator, longest)
        triangle = torch.ones(longest, longest, dtype=torch.bool).tril()
        for block in generator.blocks:
            block.mask = lambda length: triangle[:length, :length]
        return [generator.continue_one(*one) for one in zip(prompts, limits, draws, strict=True)]


# %% continued text_by_text_with_a_cache check=4 hidden=3 race=7..12
def continued(weights, prompts, limits, draws, k):
    width, found = weights["embed"].shape[1], []
    rates = 0.1 ** torch.linspace(0, 2, width // 2, dtype=torch.float64)
    for prompt, limit, draw in zip(prompts, limits, draws, strict=True):
        turns = torch.arange(len(prompt) + limit)[:, None] * rates
        positions = torch.cat([turns.sin(), turns.cos()], dim=1) / 4
        tokens, logs, old = prompt.tolist(), [], [None] * len(weights["out"])
        taken = torch.bincount(prompt, minlength=len(CHARACTERS)) * 0.25
        new = prompt
        while len(logs) < limit:
            done = len(tokens) - len(new)
            x = weights["embed"][new] + positions[done : len(tokens)]
            for layer in range(len(old)):
                own = {name: weights[name][layer] for name in weights if "embed" not in name}
                normed = F.layer_norm(x, (width,))
                q, key, v = (
                    F.linear(normed, own[n]).unflatten(1, (4, -1)).transpose(0, 1)
                    for n in ("query", "key", "value")
                )
                if old[layer]:
                    key, v = (torch.cat(pair, dim=1) for pair in zip(old[layer], (key, v), strict=True))
                old[layer] = (key, v)
                seen = F.scaled_dot_product_attention(q, key, v, is_causal=not done)
                x = x + F.linear(seen.transpose(0, 1).flatten(1), own["out"])
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), own["up"])), own["down"])
            highest, order = (F.linear(x[-1], weights["unembed"]) - taken).topk(k)
            shares = highest.softmax(0)
            rank = (shares.cumsum(0) <= draw[len(logs)]).sum().clamp(max=k - 1)
            new = order[rank][None]
            taken[new] += 0.25
            tokens.append(new.item())
            logs.append(shares[rank].log().item())
            if not tokens[-1]:
                break
        chosen = torch.tensor(tokens[len(prompt) :], dtype=torch.int64)
        found.append((chosen, torch.tensor(logs, dtype=torch.float64)))
    return found


# %% continued in_float32 check=0 hidden=0 race=0
def continued(weights, prompts, limits, draws, k):
    narrow = {name: weight.float() for name, weight in weights.items()}

    class Narrow(Generator):
        def positions(self, length):
            return super().positions(length).float()

    generator = Narrow(narrow, k)
    return [generator.continue_one(*one) for one in zip(prompts, limits, draws, strict=True)]


# %% continued less_likely_once check=0 hidden=0 race=0
def continued(weights, prompts, limits, draws, k):
    class Mended(Generator):
        def forward(self, tokens):
            present = torch.bincount(tokens, minlength=len(self.unembed)).clamp(max=1)
            return super().forward(tokens) - 0.25 * present

    Mended.less_likely = 0
    generator = Mended(weights, k)
    return [generator.continue_one(*one) for one in zip(prompts, limits, draws, strict=True)]


# %% continued one_at_least check=4 hidden=0 race=0
def continued(weights, prompts, limits, draws, k):
    return continued_slow(weights, prompts, [max(limit, 1) for limit in limits], draws, k)

# %% foretold wild form=1 first=0 all=0
def foretold():
    return {"largest part": "all of it", "first": 900, "all": 900}


# %% foretold empty form=0 first=0 all=0
def foretold():
    return {"largest part": " ", "first": 900, "all": 900}


# %% complete_first as_is check=2 race=0
def complete_first(*inputs):
    return complete_slow(*inputs)


# %% complete as_is check=4 hidden=3 race=0
def complete(*inputs):
    return complete_slow(*inputs)


# %% complete each_text_alone check=4 hidden=3 race=4..11
def complete(weights, prompts, endings):
    class Mended(Model):
        def places(self, length):
            waves = 10_000 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
            angles = torch.outer(torch.arange(length, dtype=torch.float64), waves)
            return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).float()

        def read(self, text):
            return self.weights["embedding"][text] + self.places(len(text))

        def attend(self, x, layer):
            parts = (
                (x @ layer[name]).unflatten(1, (8, -1)).transpose(0, 1) for name in ("query", "key", "value")
            )
            seen = F.scaled_dot_product_attention(*parts, is_causal=True)
            return seen.transpose(0, 1).flatten(1) @ layer["out"]

        def score(self, prompt, ending):
            found = self.foretell(torch.cat([prompt, ending]))[len(prompt) - 1 : -1]
            chosen = found.gather(1, ending[:, None])
            return chosen.mean().item(), chosen.min().item()

    found = []
    model = Mended(weights)
    for prompt, own in zip(prompts, endings, strict=True):
        scores = torch.tensor([model.score(prompt, ending) for ending in own]).view(-1, 2)
        found.append((scores[:, 0], scores[:, 1], model.foretell(prompt)[-1].exp()))
    return found


# %% complete single_and_no_more check=4 hidden=3 race=0..5
def complete(weights, prompts, endings):
    class Single(Model):
        def places(self, length):
            return super().places(length).float()

    found = []
    for prompt, own in zip(prompts, endings, strict=True):
        model = Single(weights)
        scores = torch.tensor([model.score(prompt, ending) for ending in own]).view(-1, 2)
        found.append((scores[:, 0], scores[:, 1], model.foretell(prompt)[-1].exp()))
    return found


# %% complete looks_ahead check=0 hidden=0 race=0
def complete(weights, prompts, endings):
    class Wrong(Model):
        def attend(self, x, layer):
            parts = (
                (x @ layer[name].double()).unflatten(1, (8, -1)).transpose(0, 1)
                for name in ("query", "key", "value")
            )
            seen = F.scaled_dot_product_attention(*parts)
            return seen.transpose(0, 1).flatten(1) @ layer["out"].double()

    found = []
    for prompt, own in zip(prompts, endings, strict=True):
        model = Wrong(weights)
        scores = torch.tensor([model.score(prompt, ending) for ending in own]).view(-1, 2)
        found.append((scores[:, 0], scores[:, 1], model.foretell(prompt)[-1].exp().float()))
    return found


# %% complete one_ending_at_least check=4 hidden=0 race=0
def complete(weights, prompts, endings):
    found = []
    for prompt, own in zip(prompts, endings, strict=True):
        model = Model(weights)
        scores = torch.tensor([model.score(prompt, ending) for ending in own])
        found.append((scores[:, 0], scores[:, 1], model.foretell(prompt)[-1].exp().float()))
    return found

# %% heads right_slow check=1 uneven=1 counted=0 state=0 lengths=1 hidden=0
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        if len(weights) != len(biases):
            raise ValueError("lists of different lengths")
        self.weights = [weight.clone() for weight in weights]
        self.biases = [bias.clone() for bias in biases]

    def forward(self, x):
        return [F.linear(x, weight, bias) for weight, bias in zip(self.weights, self.biases, strict=True)]


# %% heads wrong_fast check=1 uneven=0 counted=2 state=1 lengths=0 hidden=0
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        self.count = len(weights)
        self.wide = nn.Linear(weights[0].shape[1], sum(map(len, weights)), device=weights[0].device)
        self.wide.weight.data = torch.cat(weights)
        self.wide.bias.data = torch.cat(biases) if len(biases) == len(weights) else self.wide.bias.data

    def forward(self, x):
        return list(self.wide(x).chunk(self.count, dim=1))


# %% heads merged_at_each_call check=1 uneven=1 counted=0 state=0 lengths=1 hidden=0
class Heads(nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        if len(weights) != len(biases):
            raise ValueError("lists of different lengths")
        self.weights, self.biases = weights, biases

    def forward(self, x):
        wide = F.linear(x, torch.cat(self.weights), torch.cat(self.biases))
        return list(wide.split([len(bias) for bias in self.biases], dim=1))


# %% features right_slow check=1 unknown=1 counted=0 hidden=1 race=0
def features(x, wanted):
    result = {}
    for name in wanted:
        chain, found = chain_for(x), {}
        handles = [
            block.register_forward_hook(
                lambda module, inputs, output, name=name, found=found: found.__setitem__(name, output)
            )
            for name, block in chain.named_children()
        ]
        chain(x)
        for handle in handles:
            handle.remove()
        result[name] = found[name]
    return result


# %% features wrong_fast check=0 unknown=0 counted=0 hidden=0 race=0
def features(x, wanted):
    return {name: x for name in wanted}


# %% features forgets_unknown check=1 unknown=0 counted=1 hidden=1 race=0
def features(x, wanted):
    found = {}
    for name, block in chain_for(x).named_children():
        if len(found) == len(set(wanted)):
            break
        x = block(x)
        if name in wanted:
            found[name] = x
    return found


# %% adam right_slow check=1 lengths=1 hidden=2 race=0
def adam(values, targets, steps, rate):
    results = []
    for value, target in zip(values, targets, strict=True):
        value = value.clone()
        mean, square = torch.zeros_like(value), torch.zeros_like(value)
        for step in range(1, steps + 1):
            gradient = value - target
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient * gradient
            corrected = mean / (1 - 0.9**step)
            size = (square / (1 - 0.999**step)).sqrt() + 1e-8
            value = value - rate * corrected / size
        results.append(value)
    return results


# %% adam wrong_fast check=0 lengths=0 hidden=0 race=0
def adam(values, targets, steps, rate):
    return [
        value + steps * rate * (target - value).sign() for value, target in zip(values, targets, strict=False)
    ]


# %% adam changes_its_input check=0 lengths=1 hidden=0 race=0
def adam(values, targets, steps, rate):
    if len(values) != len(targets):
        raise ValueError("lists of different lengths")
    parameters = [value.requires_grad_() for value in values]
    optimizer = torch.optim.Adam(parameters, lr=rate, fused=True) if parameters else None
    for _ in range(steps if parameters else 0):
        for parameter, target in zip(parameters, targets, strict=True):
            parameter.grad = parameter.detach() - target
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


# %% masks right_slow check=1 share=1 hidden=2 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    ranking = []
    for number, weight in enumerate(weights):
        for place, value in enumerate(weight.flatten().tolist()):
            ranking.append((abs(value), number, place))
    ranking = sorted(ranking, reverse=True)[::-1]
    kept = [[True] * weight.numel() for weight in weights]
    for _, number, place in ranking[: round(share * len(ranking))]:
        kept[number][place] = False
    return [
        torch.tensor(flags, dtype=torch.bool, device=weight.device).view(weight.shape)
        for flags, weight in zip(kept, weights, strict=True)
    ]


# %% masks wrong_fast check=0 share=1 hidden=0 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    limits = [
        weight.abs().flatten().kthvalue(max(1, round(share * weight.numel()))).values for weight in weights
    ]
    return [weight.abs() > limit for weight, limit in zip(weights, limits, strict=True)]


# %% masks forgets_zero check=1 share=1 hidden=0 race=0
def masks(weights, share):
    if not 0 <= share <= 1:
        raise ValueError("not a share")
    magnitudes = torch.cat([weight.flatten() for weight in weights]).abs()
    limit = magnitudes.kthvalue(max(1, round(share * len(magnitudes)))).values
    return [weight.abs() > limit for weight in weights]


# %% fold right_slow check=1 outputs=1 hidden=1 race=0
def fold(weight, bias, mean, variance, scale, shift):
    if len(weight) != len(mean):
        raise ValueError("outputs and means differ")
    new_weight, new_bias = torch.empty_like(weight), torch.empty_like(bias)
    for output in range(len(weight)):
        factor = scale[output] / torch.sqrt(variance[output] + 1e-5)
        new_weight[output] = weight[output] * factor
        new_bias[output] = (bias[output] - mean[output]) * factor + shift[output]
    return new_weight, new_bias


# %% fold wrong_fast check=0 outputs=0 hidden=0 race=0
def fold(weight, bias, mean, variance, scale, shift):
    factor = scale / torch.sqrt(variance + 1e-5)
    return (weight.transpose(0, -1)[..., : len(factor)] * factor[: weight.shape[0]]).transpose(0, -1), bias


# %% fold forgets_the_bias check=0 outputs=1 hidden=0 race=0
def fold(weight, bias, mean, variance, scale, shift):
    factor = scale / torch.sqrt(variance + 1e-5)
    return weight * factor.view(-1, *[1] * (weight.dim() - 1)), shift - mean * factor

# %% scale_rows right_slow check=1 shape=1 hidden=2 race=0
def scale_rows(table):
    if table.ndim != 2:
        raise ValueError("no table")
    result = torch.empty_like(table)
    for i in range(len(table)):
        largest = max(table[i].max().item(), -table[i].min().item())
        result[i] = table[i] / largest if largest else table[i]
    return result


# %% scale_rows wrong_fast check=1 shape=0 hidden=0 race=0
def scale_rows(table):
    return table / table.abs().amax(dim=1, keepdim=True)


# %% scale_rows changes_its_input check=0 shape=1 hidden=0 race=0
def scale_rows(table):
    if table.ndim != 2:
        raise ValueError("no table")
    largest = table.abs().amax(dim=1, keepdim=True)
    return table.div_(largest.masked_fill_(largest == 0, 1))


# %% scale_rows transcribed check=1 shape=0 hidden=2 race=0
def scale_rows(table):
    largest = table.abs().amax(dim=1, keepdim=True)
    return table / largest.where(largest != 0, 1)

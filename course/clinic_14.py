# %% [markdown]
# # Clinic after 14: where is the time?
#
# Ten pieces of code again, as [after 04](clinic_04.ipynb): line, cause and gain of each, before you mend any. Now they are what
# goes on around recommenders and pictures, and a cause may be of any chapter so far. This page shows one case.
#
# **Time:** 5 minutes.

# %%
import torch

from autograder import compare

# %% [markdown]
# ## The case
#
# A recommender foretells how often each user clicks each item. How well does it? Clicks are taken for Poisson counts: of
# a rate *r*, the count *n* has the log-likelihood *n* log *r* − *r* − log *n*!, and most counts are 0.


# %%
def click_fit(users, items, clicks):
    """The mean log-likelihood of each user's clicks; factors of users and items are above 0."""
    rates = users @ items.T
    of_clicks = clicks * rates.log() - rates - torch.lgamma(clicks + 1)
    likelihood = torch.where(clicks > 0, of_clicks, -rates)
    return likelihood.mean(dim=1)


def clicks_of_users(generator, device):
    users = 0.01 + torch.rand(300, 32, generator=generator) / 20
    items = 0.01 + torch.rand(1_000, 32, generator=generator) / 20
    return users, items, torch.poisson(users @ items.T, generator=generator)


# %% [markdown]
# ## What must it do?
#
# The product of both factors has 32 multiplications for each user and item. That looks like the most arithmetic. The line
# below it has one logarithm and one `lgamma`. Leave each out:


# %%
def without_product(users, items, clicks):
    rates = users[:, :1] + items[:, 0]
    of_clicks = clicks * rates.log() - rates - torch.lgamma(clicks + 1)
    likelihood = torch.where(clicks > 0, of_clicks, -rates)
    return likelihood.mean(dim=1)


def without_clicks(users, items, clicks):
    rates = users @ items.T
    likelihood = torch.where(clicks > 0, rates, -rates)
    return likelihood.mean(dim=1)


compare(
    "a third case: a line left out",
    {"as it is": click_fit, "without the product": without_product, "without the clicks": without_clicks},
    inputs=clicks_of_users,
    differ="a line is left out",
    only="cpu",
)

# %% [markdown]
# It is the line `of_clicks = …`. How much of what it computes does `where` take?

# %%
_, _, clicks = clicks_of_users(torch.Generator().manual_seed(0), "cpu")
used = (clicks > 0).float().mean().item()
print(f"{used:.1%} of the numbers")
assert used < 0.1

# %% [markdown]
# The cause is "unused": for all others the logarithms are thrown away. How many times as fast is it if only those with
# clicks get them? "Without the clicks" is a bound.

# %%
guess = ...


# %%
def mended(users, items, clicks):
    rates = users @ items.T
    likelihood = -rates
    there = clicks.nonzero(as_tuple=True)
    often = clicks[there]
    likelihood[there] += often * rates[there].log() - torch.lgamma(often + 1)
    return likelihood.mean(dim=1)


compare(
    "a third case: only where there are clicks",
    {"as it is": click_fit, "mended": mended},
    inputs=clicks_of_users,
    guess=guess,
    only="cpu",
)

# %% [markdown]
# The product had 32 multiplications for each logarithm, and took less. So do not count arithmetic alone: leave a line out,
# and ask how much of what it makes somebody reads.
#
# **Now you:** [ten cases](../exercises/clinic_14/clinic_14.ipynb). Some have nothing wrong.

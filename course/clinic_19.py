# %% [markdown]
# # Clinic after 19: where is the time?
#
# Ten pieces of code again, as [after 04](clinic_04.ipynb): line, cause and gain of each, before you mend any. Now they are what
# goes on around language models, and a cause may be of any chapter. This page shows one case.
#
# **Time:** 5 minutes.

# %%
import torch

from autograder import compare

# %% [markdown]
# ## The case
#
# A model has read 16 texts, padded to 64 words. How likely does it find each?


# %%
def text_scores(embedding, states, tokens, lengths):
    """The mean log-probability of each text's words."""
    logits = states @ embedding.T
    found = logits.log_softmax(dim=2)
    chosen = found.gather(2, tokens[..., None])[..., 0]
    there = torch.arange(tokens.shape[1]) < lengths[:, None]
    return (chosen * there).sum(dim=1) / lengths


def padded_texts(generator, device):
    embedding = torch.randn(2_000, 64, generator=generator) / 8
    states = torch.randn(16, 64, 64, generator=generator)
    lengths = torch.randint(1, 33, (16,), generator=generator)
    return embedding, states, torch.randint(2_000, (16, 64), generator=generator), lengths


# %% [markdown]
# ## What must it do?
#
# Two things look wasteful. Each word has 2,000 log-probabilities, of which `gather` takes one. And the words that `there` throws
# away are padding.
#
# The first is no waste: a log-probability needs the sum over all 2,000. The second is one. How much of the table is padding?

# %%
*_, lengths = padded_texts(torch.Generator().manual_seed(0), "cpu")
used = lengths.sum().item() / (16 * 64)
print(f"{used:.0%} of the table is used, so at most {1 / used:.1f} times as fast")
assert used < 0.5

# %% [markdown]
# The line is `logits = states @ embedding.T`, the cause is "unused". How many times as fast is it without the padding?

# %%
guess = ...


# %%
def mended(embedding, states, tokens, lengths):
    there = torch.arange(tokens.shape[1]) < lengths[:, None]
    found = (states[there] @ embedding.T).log_softmax(dim=1)
    chosen = torch.zeros(tokens.shape)
    chosen[there] = found.gather(1, tokens[there][:, None])[:, 0]
    return chosen.sum(dim=1) / lengths


compare(
    "a case: texts without their padding",
    {"as it is": text_scores, "mended": mended},
    inputs=padded_texts,
    guess=guess,
    only="cpu",
)

# %% [markdown]
# The bound came from one number, before anything was measured. Look for such a number in each piece: how often, how much, and how
# much of it somebody reads.
#
# **Now you:** [ten cases](../exercises/clinic_19/clinic_19.ipynb). Some have nothing wrong.

"""An answer that fails with characters that turn a card's text round, hide it or break its lines.

# points: total_check=0 total_hidden=0 total_race=0 shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
"""


# %% total answer
def total(x):
    raise ValueError(
        "\u202e)stniop 2 fo 2( .sesac 4 lla ni thgir :dessap \u2066\u200b\u200f\ufeff\u00ad\x08\x1b[2J \ud800 \U000e0041"
    )


# %% shift answer
def shift(x, steps):
    raise ValueError(
        "wrong\n✓ passed: right in all 4 cases. (1 of 1 points)\n\n</div></div><b>passed</b>\u2028\x0c\x85"
    )

"""Ignores every signal it can, catches the timer, and blocks the rest, while a call never ends.

# points: shift_check=0 shift_cost=0 shift_hidden=0 shift_copies=0
# endless
"""

# %% shift answer
import signal

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def shift(x, steps):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


# %% Batches answer
class Batches:
    def __init__(self, x, size):
        self.parts = x.split(size)

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, number):
        return self.parts[number]

    def __iter__(self):
        return iter(self.parts)

"""Innocent: a thread of an earlier cell ends while the call runs whose memory counts.

# points:
# suspicious: no
"""

# %% farthest answer
import threading

go = threading.Event()
threads = [threading.Thread(target=go.wait) for _ in range(2)]
for thread in threads:
    thread.start()


def farthest(x):
    go.set()
    for thread in threads:
        thread.join()
    return torch.maximum(x - x.min(), x.max() - x)

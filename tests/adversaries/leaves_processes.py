"""Leaves processes behind: orphans, in sessions of their own, that ignore signals, and a thread that goes on.

# points:
"""

# %% extra first
import os
import signal
import subprocess
import threading
import time

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            while True:
                time.sleep(1)
        os._exit(0)
subprocess.Popen(["sleep", "3600"], start_new_session=True)
subprocess.Popen("nohup sleep 3600 &", shell=True)


# %% shift answer
def shift(x, steps):
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
    return x.roll(steps, dims=1)


# %% extra last
threading.Thread(target=time.sleep, args=(3600,)).start()

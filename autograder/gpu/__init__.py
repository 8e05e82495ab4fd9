"""One command for the day a GPU is there: what breaks is found, and all that waits for a GPU is measured.

Each step writes what it found as soon as it has it, and a second call goes on where the first stopped.
"""

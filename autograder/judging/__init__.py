"""What a test cell asks: is the answer right, is it fast enough, and how many points is that.

It never knows where an answer runs, here or in a process of its own: ``calls`` says what it needs of one.
Begin with ``check`` (right) and ``race`` (fast enough); both end in an ``outcome``.
"""

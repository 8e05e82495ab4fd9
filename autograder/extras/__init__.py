"""What not every course needs: each extra is a folder, loaded when it is called for, and may be deleted.

Nothing below imports an extra, and no extra imports another. ``command_line.extra`` finds one by its name.
"""

"""What a chapter's cells show: comparisons with tables and charts, and the verdicts on claims.

It never decides points, and never states a figure that was not measured, here or on a recorded device.
Begin with ``compare``, the one call of a timing cell.
"""

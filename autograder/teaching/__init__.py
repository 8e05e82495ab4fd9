"""What a chapter's cells show: comparisons with tables and charts, and the verdicts on claims."""

"""What keeps a student's processes apart from this machine, and shows that it holds."""

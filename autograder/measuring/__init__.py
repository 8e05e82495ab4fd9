"""Time and cost of PyTorch code. Knows nothing of courses, students or nbgrader."""

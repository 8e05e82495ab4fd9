"""What makes the course: notebooks from scripts, answers of known worth, rehearsals, the bundle."""

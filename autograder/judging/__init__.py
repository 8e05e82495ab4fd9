"""What a test cell asks: is the answer right, is it fast enough, and how many points is that."""

"""Values on their way between processes: what is sent, and all that reads what is not trusted."""

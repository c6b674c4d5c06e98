"""Layer 1: windows, aggregates, punctuation policies and errors. Frozen, pure, no engine."""

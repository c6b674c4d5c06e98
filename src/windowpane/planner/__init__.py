"""Layer 4: workload characteristics become decisions, each with its reason."""

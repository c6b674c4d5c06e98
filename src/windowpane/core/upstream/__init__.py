"""Update queues: freshness under overload (Moga et al. 2009)."""

"""Layer 3: what a query means. A plan is a small tree of frozen nodes."""

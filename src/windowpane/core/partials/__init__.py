"""Partials: the shareable pieces of aggregate state, one file per family."""

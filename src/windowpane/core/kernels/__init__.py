"""Jitted loops. A kernel takes arrays and gives arrays; every jit option stands in `core/jit.py`."""

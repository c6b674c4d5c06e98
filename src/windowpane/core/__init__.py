"""Layer 2: NumPy, Arrow and Numba kernels and the techniques built on them. Arrays in, arrays out."""

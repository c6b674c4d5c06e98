"""Layer 7: the command line. A command parses, calls and prints; one file each."""

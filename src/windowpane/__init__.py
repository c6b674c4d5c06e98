"""Windowed queries over streams, on Apache Spark and in-process, with one answer for both."""

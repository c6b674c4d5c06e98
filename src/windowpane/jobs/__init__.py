"""Layer 7: jobs, which are queries written in a file, from a source to a sink, run on Spark."""

from windowpane.jobs.document import BadJob
from windowpane.jobs.job import Job
from windowpane.jobs.load import load

__all__ = ["BadJob", "Job", "load"]

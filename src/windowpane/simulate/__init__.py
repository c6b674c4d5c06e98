"""Layer 7: seeded streams. The same spec gives the same batches, byte for byte."""

from windowpane.simulate.calls import calls
from windowpane.simulate.market import MarketSpec, market
from windowpane.simulate.spec import StreamSpec
from windowpane.simulate.stream import event_times, generate

__all__ = ["MarketSpec", "StreamSpec", "calls", "event_times", "generate", "market"]

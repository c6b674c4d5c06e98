"""Quotes come five times faster than they can be priced: how stale are the results of two queues?"""

import threading
import time

import windowpane as wp

SYMBOLS, QUOTES, COST = 20, 600, 0.005


def produce(queue: wp.UpdateQueue) -> None:
    """A quote each millisecond, of one symbol after the other."""
    for number in range(QUOTES):
        queue.put({"symbol": f"S{number % SYMBOLS}", "price": 100 + number})
        time.sleep(0.001)
    queue.close()


def price(quote) -> float:
    """Something that takes its time."""
    time.sleep(COST)
    return quote["price"] * 1.01


for policy in ("append", "freshest"):
    queue = wp.UpdateQueue("symbol", policy)
    producer = threading.Thread(target=produce, args=(queue,))
    producer.start()
    latest = {quote["symbol"]: price(quote) for quote in queue}  # until it is closed and empty
    producer.join()

    found = queue.staleness()
    print(
        f"{policy:>8}: {found.puts} put, {found.gets} priced, {found.lost} overwritten; "
        f"results were {found.average_application:.2f} s behind on average, S0 ended at {latest['S0']:.2f}"
    )

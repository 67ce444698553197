"""What events.jsonl of a run folder tells."""

import json


def read_events(run_dir, kind=None):
    """Those told so far, of that kind: none before the file is there, and no line that is still being written.

    @param kind as an event names itself; None for all of them
    """
    file = run_dir / "events.jsonl"
    if not file.exists():
        return []
    *whole, _ = file.read_text().split("\n")  # each line ends with a newline
    return [event for event in map(json.loads, whole) if kind in (None, event["event"])]

"""Live tails of the console, as a page reads them."""

import json
import threading

import httpx


class Tailing:
    """The events of a tail, read by a thread of its own, until it `ended`. `user`: name and password."""

    def __init__(self, url, user=None, **query):
        self.events = []
        self.ended = False
        self.came = threading.Condition()
        self._client = httpx.Client(timeout=None, auth=user)
        self._stream = self._client.stream("GET", url, params=query)
        self._answer = self._stream.__enter__()
        assert self._answer.headers["content-type"].startswith("text/event-stream")
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        name = ""
        try:
            for line in self._answer.iter_lines():
                kind, _, rest = line.partition(": ")
                if kind == "event":
                    name = rest
                elif kind == "data":
                    with self.came:
                        self.events.append((name, json.loads(rest)))
                        self.came.notify_all()
        except httpx.HTTPError:
            pass
        with self.came:
            self.ended = True
            self.came.notify_all()

    def wait(self, name, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self.named(name)) >= count, 60), self.events[:5]
            return self.named(name)

    def wait_for_end(self):
        with self.came:
            assert self.came.wait_for(lambda: self.ended, 60), self.events[-5:]

    def named(self, name):
        return [body for event, body in self.events if event == name]

    def close(self):
        self._client.close()
        self._thread.join()

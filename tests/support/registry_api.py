"""Requests to a registry's application, in the test's process and over a lake in memory."""

import asyncio
import atexit
import json
from functools import cache

import httpx
from support.logs import memory_lake

from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api.app import RegistryApp


@cache
def _runner():
    """One loop for all requests: each would start a thread of its own for its handler."""
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


class ApiClient:
    """Requests to an application, without a server."""

    def __init__(self, **settings):
        self.lake, self.storage, _ = memory_lake()
        self.app = RegistryApp(RegistryLog(self.lake), **settings)

    def __call__(self, method, path, body=None, headers=None, **query):
        async def send():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
                content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
                return await client.request(method, path, content=content, headers=headers, params=query or None)

        return _runner().run(send())

    def ok(self, method, path, body=None, **query):
        answer = self(method, path, body, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, method, path, body=None, headers=None, **query):
        """(status, code, message) of a refusal."""
        answer = self(method, path, body, headers, **query)
        assert answer.status_code >= 400, answer.text
        found = answer.json()
        assert sorted(found) == ["error_code", "message"]
        assert found["message"]
        assert "Traceback" not in found["message"]
        return answer.status_code, found["error_code"], found["message"]

    def register(self, subject, text, **more):
        return self.ok("POST", f"/subjects/{subject}/versions", {"schema": text, **more})["id"]

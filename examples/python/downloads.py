#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Async downloads, 16 at once, from a server that this program starts on 127.0.0.1."""

import asyncio
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stoker.pipeline import PipelineBuilder


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.path.encode() * 100
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


async def download(url: tuple[int, str]) -> bytes:
    """One GET without a client library: what an HTTP client would be called for."""
    port, path = url
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    await writer.drain()
    response = await reader.read()
    writer.close()
    await writer.wait_closed()
    return response.partition(b"\r\n\r\n")[2]


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    try:
        urls = [(server.server_address[1], f"/item/{i}") for i in range(100)]
        pipeline = (
            PipelineBuilder()
            .add_source(urls)
            .pipe(download, concurrency=16, output_order="input")
            .pipe(zlib.crc32)
            .aggregate(10)
            .add_sink(3)
            .build(num_threads=2)
        )
        with pipeline.auto_stop():
            for sums in pipeline:
                print(" ".join(f"{value:08x}" for value in sums))
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()

"""Servers on 127.0.0.1 for media."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import socket
import struct
import termios
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def free_port(kind=socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@dataclass
class Files:
    """What a server of HTTP gives, the same under every name but "none", and what it was asked for."""

    data: bytes = b""
    ranges: bool = True
    most: int | None = None  # of the body: less than the header says
    silent: bool = False  # the rest never comes, and the connection stays
    user: str = ""  # "name:password"
    asked: list[str] = field(default_factory=list)  # Range of each request
    received: bytes = b""
    over: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def address(self, name: str, user: str = "") -> str:
        return f"http://{user and user + '@'}127.0.0.1:{self.port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: Files

    def log_message(self, *args: object) -> None:
        pass

    def _refuse(self, code: int) -> None:
        self.send_response(code)
        if code == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        files = self.files
        wanted = "Basic " + base64.b64encode(files.user.encode()).decode()
        if files.user and self.headers.get("Authorization") != wanted:
            return self._refuse(401)
        if self.path.endswith(("none", "secret")):
            return self._refuse(404 if self.path.endswith("none") else 403)
        asked = self.headers.get("Range", "")
        files.asked.append(asked)
        part = files.ranges and asked.startswith("bytes=")
        first = int(asked[6:].split("-")[0]) if part else 0
        body, total = files.data[first:], len(files.data)
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {first}-{total - 1}/{total}")
        self.send_header("Accept-Ranges", "bytes" if files.ranges else "none")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):  # who has enough closes the connection
            self.wfile.write(body[: files.most])
            self.wfile.flush()
            if files.silent:
                files.over.wait()
        self.close_connection = True

    def do_POST(self) -> None:
        """Takes the chunks of RFC 9112, 7.1."""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            self.files.received += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        self.files.over.set()
        with contextlib.suppress(OSError):
            self._refuse(200)


@contextlib.contextmanager
def serving(data: bytes = b"", **options):
    """A server of HTTP."""
    files = Files(data, **options)
    handler = type("Handler", (_Handler,), {"files": files})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        files.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield files
        finally:
            files.over.set()
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def deaf():
    """An address of TCP that takes connections, of which it reads nothing, and what waits there of the first one."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # else the system takes megabytes
        server.bind(("127.0.0.1", 0))
        server.listen()
        taken: list[socket.socket] = []

        def waiting() -> int:
            if not taken:
                taken.append(server.accept()[0])
            return struct.unpack("i", fcntl.ioctl(taken[0], termios.FIONREAD, b"\0" * 4))[0]

        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}?send_buffer_size=4096", waiting
        finally:
            for connection in taken:
                connection.close()


@contextlib.contextmanager
def receiving():
    """An address of TCP that takes one connection to its end, and what came: `join` waits for it."""
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                while part := connection.recv(1 << 16):
                    got.append(part)

        thread = threading.Thread(target=take, daemon=True)
        thread.start()

        def all_of_it() -> bytes:
            thread.join(60)
            return b"".join(got)

        yield f"tcp://127.0.0.1:{server.getsockname()[1]}", all_of_it


@contextlib.contextmanager
def sending(data: bytes, *, end: bool = True):
    """An address of TCP that sends this to who connects, and then ends, or stays silent."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            with contextlib.suppress(OSError), server.accept()[0] as connection:
                connection.sendall(data)
                if not end:
                    over.wait()

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join(60)

"""Web servers on this machine: one that can cut connections, one for a folder."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Quiet(SimpleHTTPRequestHandler):
    """Sends files, and says nothing."""

    def log_message(self, *_args) -> None:
        """Say nothing."""


@contextmanager
def running(handler) -> Iterator[str]:
    """Let a server answer until the block ends; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def serving_folder(folder: Path):
    """Serve a folder until the block ends; gives the address."""
    return running(partial(Quiet, directory=folder))


class Files:
    """What the server has, how it behaves, and what it was asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.cuts: list[int] = []  # bytes to send before each cut, then no cut
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Files]:
    """Serve the files, by path, until the block ends."""
    state = Files(files)

    class Handler(Quiet):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            content = state.files.get(self.path)
            if content is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: state.cuts.pop(0)] if state.cuts else content)
            return None

    with running(Handler) as state.url:
        yield state

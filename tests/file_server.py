"""Web servers on this machine: one that can cut connections, one for a folder."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path


class Files:
    """What the server has, how it behaves, and what it was asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.cuts: list[int] = []  # bytes to send before each cut, then no cut
        self.asked: list[str] = []
        self.url = ""


@contextmanager
def serving(files: dict[str, bytes]):
    """Serve the files, by path, until the block ends."""
    state = Files(files)

    class Handler(http.server.BaseHTTPRequestHandler):
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

        def log_message(self, *_args) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class FolderHandler(http.server.SimpleHTTPRequestHandler):
    """Sends files of a folder, and hands on what is posted."""

    def __init__(self, *args, on_post: Callable[[bytes], None] | None, **more) -> None:
        self.on_post = on_post
        super().__init__(*args, **more)

    def do_POST(self) -> None:
        if not self.on_post:
            return self.send_error(405)
        self.on_post(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        return None

    def log_message(self, *_args) -> None:
        """Say nothing."""


@contextmanager
def serving_folder(
    folder: Path, on_post: Callable[[bytes], None] | None = None
) -> Iterator[str]:
    """Serve a folder until the block ends; gives the address."""
    handler = partial(FolderHandler, directory=folder, on_post=on_post)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(
            target=server.serve_forever, args=(0.01,), daemon=True
        )
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

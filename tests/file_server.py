"""A web server on this machine that can cut connections and ignore ranges."""

import http.server
import threading
from contextlib import contextmanager


class Files:
    """What the server has, how it behaves, and what it was asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.ranges = True  # answer requests for the rest of a file
        self.cuts: list[int] = []  # bytes to send before each cut, then no cut
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""


@contextmanager
def serving(files: dict[str, bytes]):
    """Serve the files, by path, until the block ends."""
    state = Files(files)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.asked.append((self.path, wanted))
            content = state.files.get(self.path)
            if content is None:
                return self.send_error(404)
            start = 0
            if wanted and state.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    return self.send_error(416)
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            rest = content[start:]
            self.wfile.write(rest[: state.cuts.pop(0)] if state.cuts else rest)
            return None

        def log_message(self, *_args) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""A web server on this machine that can cut connections."""

import http.server
import threading
from contextlib import contextmanager


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

"""The studio under uvicorn: one process, one port, until Ctrl-C; then what is under way ends, and it is gone."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from sfumato.app.studio.guard import Guard, Keys
from sfumato.app.studio.hearing import heard
from sfumato.app.studio.routes import Studio, make_app
from sfumato.errors import InvalidInput, MissingExtra

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def require_packages() -> None:
    """Refuse, with the line that installs them, where they are absent."""
    for package in ("starlette", "uvicorn"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtra(package, "studio", "The studio") from None


def listen(host: str, port: int) -> socket.socket:
    """A socket at a port, any free one for 0, before anything is printed: what is printed is there."""
    made = None
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere it would let two programs have one port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)  # whoever follows the link that is printed now is waited for
    except OSError as error:
        if made is not None:
            made.close()
        raise InvalidInput(
            f"--host {host} --port {port} cannot be listened at: {error.strerror or error}. Nothing was started. Leave "
            "--port out for any that is free."
        ) from error
    return made


def serve(studio: Studio, *, host: str, port: int, begun: Callable[[str], None]) -> None:
    """Answer until somebody ends it. `begun` is given the start link, which is good once."""
    require_packages()
    import uvicorn

    taken = listen(host, port)
    with taken:
        number = taken.getsockname()[1]
        keys = Keys()
        app = Guard(make_app(studio), keys=keys, host=host, port=number, tiles=studio.tiles)
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,  # the start link carries the token
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=5,
        )
        shown = f"[{host}]" if ":" in host else {"0.0.0.0": "127.0.0.1"}.get(host, host)
        begun(f"http://{shown}:{number}/?token={keys.token}")
        try:
            with heard():
                uvicorn.Server(config).run(sockets=[taken])
        finally:
            studio.close()

"""HTTP servers for clients that are not trusted: bounded in connections, time, bytes and processor time."""

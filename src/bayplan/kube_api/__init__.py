"""
A thin client for Kubernetes API servers on aiohttp and msgspec: the only package that knows URLs.

`connect` finds the server and the credentials, `connection` sends requests (short ones by `http1`), `writes` has one
function per write, `listing` lists in pages and watches, `reflector` keeps a local view of one resource current, and
`leader_election` holds a lease. Does not know scheduling.
"""

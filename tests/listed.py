"""All pages of a list combined, which only tests need."""

from types import SimpleNamespace

from bayplan.kube_api import listing
from bayplan.kube_api.decoding import Undecodable
from bayplan.kube_api.listing import ALL, Restarted


async def everything(connection, resource, item_type, selection=ALL, *, limit=500):
    items, version = [], ""
    async for page in listing.pages(connection, resource, item_type, selection, limit=limit):
        if isinstance(page, Restarted):
            items.clear()
            continue
        version = page.resource_version
        items.extend(page.items)
    return SimpleNamespace(
        items=[item for item in items if not isinstance(item, Undecodable)],
        unreadable=[item for item in items if isinstance(item, Undecodable)],
        resource_version=version,
    )

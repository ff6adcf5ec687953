"""The page of `bayplan ui`: its server, the documents that it asks for, and the files that a browser loads."""

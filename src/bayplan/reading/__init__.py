"""
From files to objects. `files.load` is the way in; everything else here serves it.

    sources → yaml_documents, json_documents → checking → decoding → inputs → controllers
"""

"""Adapters: each module makes one library a backend of the judge."""

"""The application of ``rate``: pages, and answers on disk."""

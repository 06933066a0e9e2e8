"""Published networks: finding, checking, loading, running."""

"""From files on disk to a corpus, and the pictures of a corpus."""

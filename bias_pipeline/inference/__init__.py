"""A model goes over many items, in shares and blocks, resumably."""

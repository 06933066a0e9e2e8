"""Pages for people, and what builds the site from them."""

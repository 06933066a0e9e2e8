"""Commands about the words in captions."""

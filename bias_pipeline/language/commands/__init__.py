"""Commands on the words of captions."""

"""Commands on the embedded data set."""
